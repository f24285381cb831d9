"""What a workload is doing in the cluster, whatever its row says: the one judgement of a cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from scheduling.cluster.adapters import Sighting
from scheduling.engine import model as m
from scheduling.models import PriorityClass, State, Workload
from scheduling.services.ledger.claims import NOTHING, ClaimMemory
from scheduling.services.queues.judge import Judgement
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.snapshot.obstacles import Obstacle


class Situation(StrEnum):
    WAITING = "waiting"
    """Suspended, and nothing of it is left on a node."""
    BYPASSING = "bypassing"
    """Unsuspended, but not by Weir, or with more GPUs than Weir let in: it is to be suspended again."""
    HOLDING = "holding"
    """Admitted: it holds GPUs or is about to."""
    LEAVING = "leaving"
    """Suspended or deleted, and its pods are still going."""
    MOVING = "moving"
    """Suspended to start again on other nodes, which are kept for it."""
    DONE = "done"


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """What a cycle knows of a workload beyond the picture."""

    situation: Situation
    started: datetime | None = None
    """Since when it holds GPUs, from its row."""
    stale_since: datetime | None = None
    """Since when it is below its least members; set once that is longer than the grace."""
    ran: bool = False
    """All its members were up at some time since its admission, as far as their turn came."""
    blocked: Obstacle | None = None
    """What keeps it from being started now."""
    gpu_classes: tuple[str, ...] | None = None
    """Those it may run on for its user, where these are fewer than it asks for."""
    priority_class: str = ""
    """What it counts as, where that is not what it says."""
    is_supposed: bool = False
    """It waits in the cluster, and its start is on its way."""
    presumed: datetime | None = None
    """The checkpoint it is taken to have made, though it announced and declared nothing."""
    remembered: ClaimMemory = NOTHING
    barred: frozenset[str] = frozenset()
    """Nodes that it is not planned on now, as kube-scheduler found them unfit for it."""


def judge(observed: Sighting, state: str | None, *, enforce: bool, newcomer: bool) -> Situation:
    """The situation of ``observed`` whose row is in ``state`` (None: no row yet).

    Outside enforce mode somebody else decides what runs, and it is taken as it is. In enforce mode an
    unsuspended Job without Weir's mark has jumped the queue, unless it was known to run before
    enforcing began (its row holds GPUs) or Weir is a ``newcomer`` to the cluster: then it is adopted.
    """
    if observed.outcome:
        return Situation.DONE
    if observed.run_by:
        return Situation.WAITING  # Whatever it says of itself, nothing of it is here.
    if observed.suspended and observed.is_moving and not (observed.is_held or observed.deleting):
        return Situation.MOVING
    if observed.suspended or observed.deleting:
        return Situation.LEAVING if observed.pods_left else Situation.WAITING
    known = state in (State.ADMITTED, State.RUNNING) or (state is None and newcomer)
    let_in = (observed.marked or known) and not observed.swollen
    return Situation.HOLDING if let_in or not enforce else Situation.BYPASSING


def is_over_time(observed: Sighting, known: WorkloadFacts, now: datetime) -> bool:
    """Whether it has run, or been about to, for as long as Weir itself lets it."""
    limit_s = observed.stops_after_s
    if limit_s is None or known.started is None:
        return False
    return (now - known.started).total_seconds() >= limit_s


def is_taken(observed: Sighting, situation: Situation, rows: PolicyRows) -> bool:
    """Whether it counts in the queue that it names, where there is one. What has begun stays in its queue,
    whatever became of the policy meanwhile."""
    if situation not in (Situation.WAITING, Situation.BYPASSING):
        return True
    return observed.queue_label not in rows.queue_by_name or rows.queue_of(observed) is not None


def priority_of(
    observed: Sighting, row: Workload | None, situation: Situation, rows: PolicyRows
) -> PriorityClass | None:
    """The priority class it has. What has begun keeps that of its ``row`` instead of one that its user may
    not have: raising a label past the judge gains nothing."""
    now = rows.priority_of(observed.priority_class)
    had = row.priority_class_id if row is not None else None
    if situation is not Situation.HOLDING or now is None or had in (None, now.pk):
        return now
    before = next((p for p in rows.priority_classes if p.pk == had), None)
    fields = {fault.field for fault in rows.judge(observed).faults}
    return now if before is None or fields.isdisjoint(("priority_class", "queue")) else before


def counted_as(observed: Sighting, row: Workload, rows: PolicyRows) -> str:
    """The name of its row's priority class, if it is not the one that it says."""
    says = rows.priority_of(observed.priority_class)
    if says is None or row.priority_class_id in (None, says.pk):
        return ""
    return next((p.name for p in rows.priority_classes if p.pk == row.priority_class_id), "")


def narrowed(observed: Sighting, judgement: Judgement) -> tuple[str, ...] | None:
    """The GPU classes that are left, if they are not all of them."""
    left = judgement.gpu_classes
    return None if left == observed.gpu_classes else left


def is_as_it_should_be(observed: Sighting) -> bool:
    """Whether it waits without a trace of an admission or a move that would have to be corrected."""
    traced = observed.marked or observed.altered or observed.moves_to is not None
    return observed.suspended and not traced


def placement_of(observed: Sighting) -> dict[str, int]:
    """Members by node, in order of its name: where their pods are, and where the plan sent those that are not
    bound yet."""
    placed = dict(observed.placement)
    missing = observed.members_wanted - sum(placed.values())
    if missing <= 0:
        return placed  # Most of a large cluster, several times a cycle.
    for node, planned in sorted(observed.planned.items()):
        add = min(missing, planned - placed.get(node, 0))
        if add > 0:
            placed[node] = placed.get(node, 0) + add
            missing -= add
    return dict(sorted(placed.items()))


def roles_of(observed: Sighting) -> tuple[m.Role, ...]:
    """Of unlike members, each named by what they are called and how many GPUs one has."""
    return tuple(
        m.Role(
            f"{'+'.join(s.roles[:3]) or 'pod'} {s.gpus / m.MILLI:g}",
            s.pods - s.extra, s.gpus, s.cpus, s.memory_mib, dict(s.beside), extra=s.extra,
        )
        for s in observed.shapes
    )  # fmt: skip


def class_of(observed: Sighting, class_by_node: Mapping[str, str]) -> str | None:
    """The class it runs on: the mark of its admission, else that of the nodes most of its pods are on."""
    if observed.gpu_class:
        return observed.gpu_class
    if not observed.gpus:
        return next(iter(class_by_node.values()), None)  # Any will do: it holds nothing of it.
    members: dict[str, int] = {}
    for node, count in observed.placement.items():
        if (name := class_by_node.get(node)) in observed.gpu_classes:
            members[name] = members.get(name, 0) + count
    return max(members, key=members.__getitem__, default=None)


def held_by(observed: Sighting, known: WorkloadFacts) -> Mapping[str, int]:
    """Its members by node, as far as they count."""
    if known.situation is not Situation.HOLDING:
        return observed.placement
    if known.stale_since is not None:
        return observed.up
    return placement_of(observed) if observed.gpus else {"": observed.members}
