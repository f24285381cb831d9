"""What no workload of the picture accounts for and still holds GPUs: pods that are on their way out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from scheduling.cluster.adapters import Observed
from scheduling.cluster.picture.compose import Orphans, Picture
from scheduling.engine import model as m
from scheduling.services.policy.rows import NO_PRIORITY_CLASS, PolicyRows
from scheduling.services.snapshot.lingering import Heir, Heirs, heir_of, kept, orphans_stay
from scheduling.services.snapshot.situations import Known, Situation

NOBODY = Heir("")


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
        found.append(kept(work) if heir.queue and orphans_stay(orphans, now) else work)
    return found


def _by_class(orphans: Orphans, class_by_node: Mapping[str, str]) -> list[tuple[Orphans, str]]:
    """``orphans`` on nodes that are known, apart by the class of their nodes."""
    placed: dict[str, dict[str, int]] = {}
    for node, count in orphans.placement.items() if orphans.gpus else ():
        if node in class_by_node:
            placed.setdefault(class_by_node[node], {})[node] = count
    return [(replace(orphans, placement=nodes), name) for name, nodes in placed.items()]


def left_behind(
    workloads: Iterable[Observed],
    picture: Picture,
    known: Mapping[str, Known],
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


def _given_up(observed: Observed, known: Known) -> Mapping[str, int]:
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
