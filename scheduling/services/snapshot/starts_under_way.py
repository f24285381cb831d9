"""Starts on their way, as plans count them: made, from when they were decided until the API server answers.

Rows and pages go by the cluster alone. To a plan such work holds its GPUs where it was sent, counts for its
queue and its user, and can be neither displaced nor resized: nothing may be written about it before its
start is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.picture.compose import Picture
from scheduling.engine import model as m
from scheduling.services.snapshot.parts import BESIDE
from scheduling.services.snapshot.situations import Situation, WorkloadFacts

SLOW = timedelta(seconds=2)
"""Of work that waits for longer it is said that it is the cluster that has not taken the start (cluster
time)."""
ON_ITS_WAY = "Its start is decided and sent; the cluster has not taken it yet."

Starts = Mapping[str, Sighting]
"""uid -> the workload as it is once its start is made."""


@dataclass(frozen=True, slots=True)
class SupposedCluster:
    """A cluster as plans count it."""

    picture: Picture
    known: dict[str, WorkloadFacts]
    starting: Starts
    """Those that wait in the cluster and hold GPUs here."""

    def among(self, workloads: Iterable[Sighting]) -> list[Sighting]:
        """Those of ``workloads`` whose author says when they start, as they count here."""
        return [self.picture.by_uid.get(o.uid, o) for o in workloads if o.turn]


def suppose(
    picture: Picture, known: dict[str, WorkloadFacts], under_way: Starts
) -> SupposedCluster:
    """``picture`` and what is ``known`` of it with the starts ``under_way`` made.

    ``under_way`` has to have been asked for before the picture was taken. What the cluster shows as anything
    but waiting is as it shows.
    """
    waiting = known.keys() & under_way.keys()
    starting = {uid: under_way[uid] for uid in waiting if _waits(known[uid])}
    if not starting:
        return SupposedCluster(picture, known, {})
    seen = replace(
        picture,
        workloads=tuple(starting.get(o.uid, o) for o in picture.workloads),
        by_uid={**picture.by_uid, **starting},
    )
    return SupposedCluster(
        seen, known | {uid: _started(o) for uid, o in starting.items()}, starting
    )


def _waits(known: WorkloadFacts) -> bool:
    return known.situation is Situation.WAITING


def _started(observed: Sighting) -> WorkloadFacts:
    return WorkloadFacts(Situation.HOLDING, started=observed.admitted, is_supposed=True)


def firm(work: m.Workload) -> m.Workload:
    """``work`` as it is planned around while its start is on its way."""
    members = sum(work.placement.values()) or work.members.min
    return replace(
        work,
        priority_class=BESIDE.name,
        members=m.Members(members, members),
        elastic=False,
        stale_since=None,
    )


def slow_starts(starting: Iterable[Sighting], now: datetime) -> list[m.Decision]:
    """What those are told whose start takes long."""
    return [
        m.Decision(
            workload=observed.key,
            action=m.Action.WAIT,
            reason=m.Reason.WAITS_FOR_TURN,
            sentence=ON_ITS_WAY,
            queue=observed.queue_label,
        )
        for observed in sorted(starting, key=lambda o: o.key)
        if observed.admitted is not None and now - observed.admitted > SLOW
    ]
