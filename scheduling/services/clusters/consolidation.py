"""What moving work together would free: the engine's own moves for an ask of whole nodes.

The ask goes to a queue of its own, and every other queue is owed exactly what it holds, so nobody is above
a share and nobody has to leave: all that the engine can do for the ask is to move others. Its rules of moving
hold as ever (docs/engine.md): run times, cooldown, budgets, the eviction cap, limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scheduling.engine import model as m
from scheduling.engine import plan as engine_plan

ASKED = "(whole nodes)"
"""The ask, its queue and its priority class. No object of a cluster is called so."""
FIXED = "(fixed)"
"""Priority class of what cannot be made again elsewhere: it outranks the ask, so it stays."""
MOST_NODES = 64
"""Whole nodes that one consolidation may be asked for."""
MOST_MOVES = 16
"""Workloads that one consolidation may move, whatever the cluster's own bound for a cycle."""

Seat = tuple[str, str]
"""(node, GPU class)"""


@dataclass(frozen=True, slots=True)
class ConsolidationEffect:
    """What consolidating class ``gpu_class`` for ``nodes`` more whole nodes would do."""

    gpu_class: str
    nodes: int
    whole: tuple[str, ...]
    """Nodes that are free as a whole already."""
    becomes_whole: tuple[str, ...]
    moves: tuple[Move, ...]
    starts: tuple[str, ...]
    """Engine names of those who wait, and start after the moves but not without them."""
    free: int
    """Milli-GPU free on nodes that take work: moving gives no more."""
    needed: int

    @property
    def is_short(self) -> bool:
        return self.free < self.needed

    @property
    def lost_gpu_s(self) -> float:
        return sum(move.lost_gpu_s for move in self.moves)


@dataclass(frozen=True, slots=True)
class Move:
    """One workload from its nodes to others: GPUs in milli, ``lost_gpu_s`` since its last checkpoint."""

    workload: str
    gpus: int
    origin: Mapping[str, int]
    target: Mapping[str, int]
    lost_gpu_s: float


def freed(snapshot: m.Snapshot, gpu_class: str, nodes: int) -> ConsolidationEffect:
    """The engine's moves that make ``nodes`` more nodes of ``gpu_class`` whole in ``snapshot``."""
    before = _whole(snapshot, gpu_class)
    free, needed = _free(snapshot, gpu_class), _size(snapshot, gpu_class) * (len(before) + nodes)
    there = {work.name: work for work in snapshot.workloads}
    moves = tuple(_move(there[d.workload], d) for d in decided(snapshot, gpu_class, nodes))
    after = moved(snapshot, moves)
    gained = tuple(name for name in _whole(after, gpu_class) if name not in before)
    starts = _started(snapshot, after) if moves else ()
    return ConsolidationEffect(gpu_class, nodes, before, gained, moves, starts, free, needed)


def decided(
    snapshot: m.Snapshot, gpu_class: str, nodes: int, *, most: int = MOST_MOVES
) -> list[m.Decision]:
    """The moves themselves, at most ``most``; none where too few GPUs are free."""
    count, size = len(_whole(snapshot, gpu_class)) + nodes, _size(snapshot, gpu_class)
    if size * count > _free(snapshot, gpu_class):
        return []
    plan = engine_plan(_with_ask(snapshot, gpu_class, size, count, min(most, MOST_MOVES)))
    return [d for d in plan.decisions if d.action is m.Action.MOVE and d.for_workload == ASKED]


def under_way(snapshot: m.Snapshot, decisions: Sequence[m.Decision]) -> m.Snapshot:
    """``snapshot`` as the next cycle will see it: work that moves is kept its place and still holds the
    old."""
    to = {decision.workload: decision.placement for decision in decisions}
    workloads = (
        replace(
            work,
            placement=to[work.name],
            devices={},
            leaving_members=work.placement,
            leaving_devices=work.devices,
            started=snapshot.now,
        )
        if work.name in to
        else work
        for work in snapshot.workloads
    )
    return replace(snapshot, workloads=tuple(workloads))


def _whole(snapshot: m.Snapshot, gpu_class: str) -> tuple[str, ...]:
    """Nodes of the class that take work and hold none."""
    taken = {
        (node, work.gpu_class)
        for work in snapshot.workloads
        for node in (*work.placement, *work.leaving_members)
        if work.gpus
    }
    return tuple(
        node.name
        for node in snapshot.nodes
        if _is_open(node, gpu_class)
        and not node.foreign_gpus
        and (node.name, gpu_class) not in taken
    )


def _is_open(node: m.Node, gpu_class: str) -> bool:
    return node.gpu_class == gpu_class and node.ready and not node.dedicated and node.gpus > 0


def _size(snapshot: m.Snapshot, gpu_class: str) -> int:
    """Milli-GPU of a node of the class, by what most of them have."""
    sizes = Counter(node.gpus for node in snapshot.nodes if _is_open(node, gpu_class))
    return max(sizes, key=lambda gpus: (sizes[gpus], gpus), default=m.MILLI)


def _free(snapshot: m.Snapshot, gpu_class: str) -> int:
    usage: Counter[str] = Counter()
    for work in snapshot.workloads:
        if work.gpu_class == gpu_class:
            for node, members in (*work.placement.items(), *work.leaving_members.items()):
                usage[node] += members * work.gpus
    return sum(
        max(0, node.gpus - node.foreign_gpus - usage[node.name])
        for node in snapshot.nodes
        if _is_open(node, gpu_class)
    )


def _with_ask(snapshot: m.Snapshot, gpu_class: str, size: int, nodes: int, most: int) -> m.Snapshot:
    """Only what holds GPUs, and the ask for ``nodes`` nodes of ``size`` as the first of all."""
    running = tuple(_settled(work) for work in snapshot.workloads if work.phase is m.Phase.RUNNING)
    ask = m.Workload(
        name=ASKED,
        queue=ASKED,
        priority_class=ASKED,
        submitted=snapshot.now,
        gpus=size,
        members=m.Members(nodes, nodes),
        gpu_classes=(gpu_class,),
    )
    owed = m.Queue(ASKED, quotas={gpu_class: m.Quota(size * nodes)})
    first = max((p.value for p in snapshot.priority_classes), default=0) + 1
    ranks = (m.PriorityClass(ASKED, first), m.PriorityClass(FIXED, first + 1, preemptible=False))
    return replace(
        snapshot,
        workloads=(*running, ask),
        queues=(*_owed_what_they_hold(snapshot.queues, running), owed),
        priority_classes=(*snapshot.priority_classes, *ranks),
        policy=replace(snapshot.policy, max_moves=most),
    )


def _settled(work: m.Workload) -> m.Workload:
    """Groups of plain pods stay where they are: nobody makes their pods again."""
    return replace(work, priority_class=FIXED) if "/podgroup/" in work.name else work


def _owed_what_they_hold(queues: Sequence[m.Queue], running: Sequence[m.Workload]) -> list[m.Queue]:
    """``queues`` with a nominal of what is held in them and below; their limits stay what they are."""
    parents = {queue.name: queue.parent for queue in queues}
    usage: Counter[Seat] = Counter()
    for work in running:
        at: str | None = work.queue
        while at in parents:
            usage[at, work.gpu_class or ""] += work.gpus * sum(work.placement.values())
            at = parents[at]
    return [replace(queue, stop=m.Stop.NONE, quotas=_quotas(queue, usage)) for queue in queues]


def _quotas(queue: m.Queue, usage: Mapping[Seat, int]) -> dict[str, m.Quota]:
    names = {*queue.quotas, *(name for at, name in usage if at == queue.name)}
    return {
        name: _quota(queue.quotas.get(name), usage.get((queue.name, name), 0))
        for name in sorted(names)
    }


def _quota(quota: m.Quota | None, usage: int) -> m.Quota:
    if quota is None or quota.borrowing_limit is None:
        return m.Quota(usage)
    most = quota.nominal + quota.borrowing_limit
    return m.Quota(usage, borrowing_limit=max(0, most - usage))


def _move(work: m.Workload, decision: m.Decision) -> Move:
    gpus = work.gpus * sum(work.placement.values())
    return Move(work.name, gpus, work.placement, decision.placement, decision.lost_gpu_s)


def moved(snapshot: m.Snapshot, moves: Sequence[Move]) -> m.Snapshot:
    """``snapshot`` once all ``moves`` are done."""
    to = {move.workload: move.target for move in moves}
    workloads = (
        replace(work, placement=to[work.name], devices={}) if work.name in to else work
        for work in snapshot.workloads
    )
    return replace(snapshot, workloads=tuple(workloads))


def _started(before: m.Snapshot, after: m.Snapshot) -> tuple[str, ...]:
    anyway = set(_admitted(before))
    return tuple(name for name in _admitted(after) if name not in anyway)


def _admitted(snapshot: m.Snapshot) -> list[str]:
    acts = engine_plan(snapshot).decisions
    return [act.workload for act in acts if act.action is m.Action.ADMIT]
