"""What no workload of the picture accounts for and still holds GPUs: pods that are on their way out.

Work that was deleted or evicted and does not go: its queue holds what it sits on until it is gone.

Kubernetes keeps the pods of a Job that is deleted behind a finalizer running, and gives pods the grace that
they ask for, be it a year. GPUs of work that goes soon count as about to come free, for nobody is displaced
for their sake; those of work that stays are its queue's as before, and nothing can be had of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.picture.compose import Orphans, Picture
from scheduling.engine import model as m
from scheduling.engine.reasons.wording import gpus_in_words
from scheduling.models import Queue, Workload
from scheduling.services.queues.rows import NO_PRIORITY_CLASS, PolicyRows
from scheduling.services.snapshot.parts import BESIDE
from scheduling.services.snapshot.situations import Situation, WorkloadFacts


def orphans_in(
    picture: Picture,
    rows: PolicyRows,
    class_by_node: Mapping[str, str],
    now: datetime,
    what: str = "deleted",
    heirs: Heirs | None = None,
) -> list[m.Workload]:
    """What deleted objects left on nodes: work of their queues, without ``heirs`` of none."""
    priority = rows.default_priority.name if rows.default_priority else NO_PRIORITY_CLASS.name
    found: list[m.Workload] = []
    parts = (part for orphans in picture.orphans for part in _by_class(orphans, class_by_node))
    for number, (orphans, gpu_class) in enumerate(parts):
        members = sum(orphans.placement.values())
        heir = NOBODY if heirs is None else heir_of(orphans, heirs, rows)
        work = m.Workload(
            name=f"{orphans.namespace}/{orphans.name} ({what} {number})",
            queue=heir.queue,
            user=heir.user,
            priority_class=priority,
            submitted=now,
            gpus=orphans.gpus,
            cpus=orphans.cpus,
            memory_mib=orphans.memory_mib,
            members=m.Members(members, members),
            phase=m.Phase.RUNNING,
            leaving=True,
            started=now,
            gpu_class=gpu_class,
            placement=orphans.placement,
        )
        found.append(as_fixed(work) if heir.queue and orphans_stay(orphans, now) else work)
    return found


def _by_class(orphans: Orphans, class_by_node: Mapping[str, str]) -> list[tuple[Orphans, str]]:
    """``orphans`` on nodes that are known, apart by the class of their nodes."""
    placed: dict[str, dict[str, int]] = {}
    for node, count in orphans.placement.items() if orphans.gpus else ():
        if node in class_by_node:
            placed.setdefault(class_by_node[node], {})[node] = count
    return [(replace(orphans, placement=nodes), name) for name, nodes in placed.items()]


def left_behind(
    workloads: Iterable[Sighting],
    picture: Picture,
    known: Mapping[str, WorkloadFacts],
    rows: PolicyRows,
    class_by_node: Mapping[str, str],
    now: datetime,
) -> list[m.Workload]:
    """What those of ``workloads`` on the move still hold on the nodes they leave, and stale gangs with
    pods that do not run."""
    left = (
        Orphans(o.namespace, o.name, o.gpus, placement, o.uid, o.cpus, o.memory_mib)
        for o in workloads
        if (placement := _given_up(o, known[o.uid]))
    )
    going = replace(picture, orphans=tuple(left))
    return orphans_in(going, rows, class_by_node, now, what="leaving")


def _given_up(observed: Sighting, known: WorkloadFacts) -> Mapping[str, int]:
    """Members by node whose pods hold GPUs there and do not count for it any more."""
    if known.situation is Situation.MOVING:
        return observed.placement
    if known.stale_since is None or known.situation is not Situation.HOLDING:
        return {}
    return {
        node: members - observed.up.get(node, 0)
        for node, members in observed.placement.items()
        if members > observed.up.get(node, 0)
    }


DELETED_S = 60.0
"""Pods of deleted work that are to be gone within so long are on their way. More would be a way to hold
twice what one is owed: by deleting again and again what takes its time."""
EVICTED_S = 3600.0
"""The same of work that Weir evicted, which may need its grace to write a checkpoint."""


@dataclass(frozen=True, slots=True)
class Heir:
    """Whom the pods of a deleted object count for."""

    queue: str
    user: str = ""


NOBODY = Heir("")
Heirs = Mapping[str, Heir]
"""By the uid of the object that is gone."""


def heirs_in(picture: Picture, rows: Mapping[str, Workload]) -> Heirs:
    """Whom pods of objects that are gone count for, as far as their ``rows`` are there, by uid."""
    return {
        orphans.uid: Heir(row.queue_label, row.user)
        for orphans in picture.orphans
        if (row := rows.get(orphans.uid)) is not None
    }


def stays(observed: Sighting, known: WorkloadFacts, now: datetime) -> bool:
    """Whether it was deleted or evicted and its pods sit on nodes for longer."""
    if known.situation not in (Situation.LEAVING, Situation.DONE) or not observed.placement:
        return False
    if observed.deleting and not observed.suspended:
        return not _goes(observed.gone_by, now, DELETED_S)
    # Right after a suspension its controller has not come to its pods yet.
    return observed.gone_by is not None and not _goes(observed.gone_by, now, EVICTED_S)


def orphans_stay(orphans: Orphans, now: datetime) -> bool:
    return not _goes(orphans.gone_by, now, DELETED_S)


def _goes(gone_by: datetime | None, now: datetime, within_s: float) -> bool:
    return gone_by is not None and gone_by <= now + timedelta(seconds=within_s)


def as_fixed(work: m.Workload) -> m.Workload:
    """``work`` that is leaving as work of its queue that nobody can displace."""
    members = sum(work.placement.values())
    return replace(
        work,
        leaving=False,
        priority_class=BESIDE.name,
        members=m.Members(members, members),
        gpu_classes=(),
        topology=m.Topology(),
        elastic=False,
        stale_since=None,
    )


def heir_of(orphans: Orphans, heirs: Heirs, rows: PolicyRows) -> Heir:
    """By what is known of the object, else the first queue of its namespace; of no queue elsewhere."""
    return heirs.get(orphans.uid) or Heir(_first_queue(rows, orphans.namespace))


def _first_queue(rows: PolicyRows, namespace: str) -> str:
    def is_home(queue: Queue) -> bool:
        return queue.namespace == namespace and queue.name in rows.leaf_names

    return min((queue.name for queue in rows.queues if is_home(queue)), default="")


def sentence(row: Workload, milli_gpus: int) -> str:
    """What people read of deleted work that stays."""
    return (
        f"It was deleted, and its pods still hold {gpus_in_words(milli_gpus)}. "
        f"They count for {row.queue_label} until they are gone."
    )
