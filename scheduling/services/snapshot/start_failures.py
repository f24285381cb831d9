"""Starts that failed: how often in a row, when the next one is tried, and which nodes are left out of it.

Objects carry that in annotations. A group of plain pods is no object and its pods are deleted, so what is
known of it stands here by its name, until the group is all up or the process ends: a new one tries again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.adapters.start_faults import NO_FAULT, UNMADE, UNPLACED, StartFault, worded
from scheduling.cluster.picture.compose import Picture
from scheduling.services.snapshot import obstacles
from scheduling.services.snapshot.situations import WorkloadFacts

BARRED = timedelta(minutes=30)
"""A node that kube-scheduler found unfit for some work is left out for it for so long."""
MOST = 1000
"""Groups that are remembered; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class StartFailure:
    times: int
    retry_at: datetime
    fault: StartFault


def failed_start(observed: Sighting, now: datetime) -> StartFailure:
    """What is to be known of ``observed`` once it is stopped ``now``, as its start failed."""
    times = observed.start_failures + 1
    retry_at = now + timedelta(seconds=obstacles.waits(obstacles.START_BACK_OFF_S, times))
    return StartFailure(times, retry_at, _fault(observed, max(retry_at, now + BARRED)))


def _fault(observed: Sighting, until: datetime) -> StartFault:
    """The words of the API server that refuses pods; else those of kube-scheduler, and the planned nodes that
    it left a member of the gang without."""
    before = observed.start_fault.barred
    if observed.unmade:
        return StartFault(worded(UNMADE, observed.unmade), before)
    if not observed.unplaced:
        return NO_FAULT
    bound = observed.placement
    unfit = [node for node, members in observed.planned.items() if bound.get(node, 0) < members]
    return StartFault(
        worded(UNPLACED, observed.unplaced), {**before, **dict.fromkeys(unfit, until)}
    )


@dataclass(slots=True)
class FailedGroups:
    """Of groups of plain pods, by the engine's name: what failed last, and the uid of the group then."""

    _known: dict[str, tuple[str, StartFailure]] = field(default_factory=dict)

    def put(self, picture: Picture) -> Picture:
        """``picture`` with what is known of groups whose pods were made anew since."""
        if not self._known:
            return picture
        known = [o for o in picture.workloads if o.parts and o.key in self._known]
        for observed in (o for o in known if o.is_up):
            del self._known[observed.key]
        again = [o for o in known if not (o.is_up or self._is_of(o))]
        return picture.with_known({o.uid: self._noted(o) for o in again})

    def _noted(self, observed: Sighting) -> Sighting:
        _, failed = self._known[observed.key]
        return replace(
            observed,
            start_failures=failed.times,
            retry_at=failed.retry_at,
            start_fault=failed.fault,
        )

    def note(
        self, workloads: Iterable[Sighting], known: Mapping[str, WorkloadFacts], now: datetime
    ) -> None:
        """Those of ``workloads`` that never were all up, and are stopped for it; once each."""
        for observed in workloads:
            if not observed.parts or known[observed.uid].stale_since is None:
                continue
            if not (known[observed.uid].ran or self._is_of(observed)):
                self._known.pop(observed.key, None)
                self._known[observed.key] = observed.uid, failed_start(observed, now)
        for key in list(self._known)[: max(0, len(self._known) - MOST)]:
            del self._known[key]

    def _is_of(self, observed: Sighting) -> bool:
        return self._known.get(observed.key, ("",))[0] == observed.uid
