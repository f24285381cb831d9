"""Which numbers of GPUs of a class a study tries: what there is, and some steps more and fewer.

A step is a node where none is told: a class of up to 16 nodes goes by single nodes, a larger one by about a
sixteenth of them, so that the curve reaches as far in proportion. A step of so many GPUs adds and takes whole
nodes as far as they go, and a part of one for the rest. What was ready in the days that are lived is one of
the numbers, where nodes were down. Of a queue the same steps are taken of its nominal quota. Nothing is ever
taken away whole.

A queue and what is below it, alone on its own quota: nothing is borrowed from others, nothing lent.

The nodes are those of the cluster, and more where the quota that is tried is larger: what bounds the queue is
its quota, and the limits of the queues below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduling.engine import model as m
from scheduling.services.ledger.past import LedgerPast
from scheduling.services.studies.whatif.changes import QuestionChanges
from scheduling.services.studies.whatif.kinds import CapacityChange
from scheduling.services.studies.whatif.now import ready

STEPS = (-2, -1, 0, 1, 2, 3, 4)
"""Steps down and up from what there is."""
FINE = 16
"""Nodes of a class that are still stepped by one."""


AS_IT_IS = "A"
"""Of all classes at once."""


def way_of(gpu_class: str, nodes: int) -> str:
    """What a variant is called."""
    return f"{gpu_class} {nodes:+d}" if nodes else AS_IT_IS


@dataclass(frozen=True, slots=True)
class LadderStep:
    """``nodes`` steps more (fewer, negative) than there are, and the milli-GPU of the class, or of the quota,
    then."""

    nodes: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Ladder:
    gpu_class: str
    node_gpus: int
    """Milli-GPU of the node that most are like; of equals the larger."""
    rungs: tuple[LadderStep, ...]

    @property
    def installed(self) -> int:
        return next(rung.gpus for rung in self.rungs if not rung.nodes)


def whole(snapshot: m.Snapshot) -> m.Snapshot:
    """``snapshot`` with every node ready and no work: what is installed, whoever is being repaired today."""
    nodes = tuple(replace(node, ready=True) for node in snapshot.nodes)
    return replace(snapshot, nodes=nodes, workloads=())


def ladders(
    template: m.Snapshot,
    steps: Iterable[int] = STEPS,
    *,
    step_gpus: int = 0,
    ready_then: Mapping[str, float] | None = None,
) -> tuple[Ladder, ...]:
    """Of each class of ``template`` that has nodes like which there could be more. ``ready_then`` is what was
    ready of a class in the days that are lived, milli-GPU."""
    chosen = sorted({0, *steps})
    then = ready_then or {}
    classes = (one.name for one in template.gpu_classes)
    found = (_ladder(template, name, chosen, step_gpus, then.get(name)) for name in classes)
    return tuple(one for one in found if one)


def _ladder(
    template: m.Snapshot, gpu_class: str, steps: Sequence[int], step_gpus: int, then: float | None
) -> Ladder | None:
    nodes = _nodes(template, gpu_class)
    if not nodes:
        return None
    usual = _usual(nodes)
    many = 1 if step_gpus else max(1, round(len(nodes) / FINE))
    installed, step = ready(template, gpu_class), step_gpus or usual
    wanted = {many * one for one in steps}
    if then is not None and then < installed:
        wanted.add(round((then - installed) / step))
    rungs = [
        LadderStep(count, ready(changed(template, gpu_class, count, step_gpus), gpu_class))
        for count in sorted(wanted)
        if -count * step < installed and -count * step // usual < len(nodes)
    ]
    return Ladder(gpu_class, usual, tuple(rungs))


def _nodes(template: m.Snapshot, gpu_class: str) -> list[m.Node]:
    return [node for node in template.nodes if node.gpu_class == gpu_class and not node.dedicated]


def _usual(nodes: Sequence[m.Node]) -> int:
    sizes = Counter(node.gpus for node in nodes)
    return max(sizes, key=lambda gpus: (sizes[gpus], gpus))


def changed(template: m.Snapshot, gpu_class: str, nodes: int, step_gpus: int = 0) -> m.Snapshot:
    """``template`` with so many steps of the class more or fewer: nodes, or ``step_gpus`` milli-GPU each."""
    if not nodes:
        return template
    if not step_gpus:
        return QuestionChanges((CapacityChange(gpu_class, nodes),)).applied(template)
    usual = _usual(_nodes(template, gpu_class))
    count, rest = divmod(abs(nodes) * step_gpus, usual)
    sign = 1 if nodes > 0 else -1
    if count:
        template = QuestionChanges((CapacityChange(gpu_class, sign * count),)).applied(template)
    if not rest:
        return template
    part = _larger if nodes > 0 else _smaller
    return part(template, gpu_class, rest)


def _larger(template: m.Snapshot, gpu_class: str, gpus: int) -> m.Snapshot:
    """With a node of only so many GPUs, and as much else in proportion."""
    one = CapacityChange(gpu_class, 1, gpus_per_node=gpus / m.MILLI)
    *before, added = QuestionChanges((one,)).applied(template).nodes
    part = gpus / _usual(_nodes(template, gpu_class))
    small = replace(
        added, name=f"{added.name} in part", cpus=_part_of(added.cpus, part),
        memory_mib=_part_of(added.memory_mib, part),
    )  # fmt: skip
    return replace(template, nodes=(*before, small))


def _part_of(whole: int | None, part: float) -> int | None:
    return None if whole is None else round(whole * part)


def _smaller(template: m.Snapshot, gpu_class: str, gpus: int) -> m.Snapshot:
    """With so many GPUs fewer on the last node that has more of them."""
    places = [n for n in _nodes(template, gpu_class) if n.gpus - n.foreign_gpus > gpus]
    if not places:
        return template
    last = max(places, key=lambda node: node.name)
    fewer = replace(last, gpus=last.gpus - gpus)
    nodes = tuple(fewer if node is last else node for node in template.nodes)
    return replace(template, nodes=nodes)


def names_below(template: m.Snapshot, queue: str) -> frozenset[str]:
    """``queue`` and all below it."""
    found = {queue}
    for one in _from_the_top(template.queues):
        if one.parent in found:
            found.add(one.name)
    return frozenset(found)


def _from_the_top(queues: Iterable[m.Queue]) -> list[m.Queue]:
    by_name = {queue.name: queue for queue in queues}

    def depth(queue: m.Queue) -> int:
        return 1 + depth(by_name[queue.parent]) if queue.parent else 0

    return sorted(by_name.values(), key=depth)


def alone_in(template: m.Snapshot, queue: str) -> m.Snapshot:
    """Only ``queue`` and what is below it, sharing among themselves as they do now."""
    names = names_below(template, queue)
    queues = tuple(
        _top(template, one) if one.name == queue else one
        for one in template.queues
        if one.name in names
    )
    return replace(template, queues=queues)


def _top(template: m.Snapshot, queue: m.Queue) -> m.Queue:
    quotas = {
        name: replace(quota, borrowing_limit=0, lending_limit=None, lowered=None)
        for name, quota in queue.quotas.items()
    }
    return replace(queue, parent=None, quotas=quotas, sharing=_sharing(template, queue))


def _sharing(template: m.Snapshot, queue: m.Queue) -> m.Sharing | None:
    """As the queue above says, where it does not say itself."""
    by_name = {one.name: one for one in template.queues}
    one: m.Queue | None = queue
    while one is not None and one.sharing is None:
        one = by_name.get(one.parent or "")
    return one.sharing if one is not None else None


def quota_ladders(
    template: m.Snapshot, queue: str, steps: Iterable[int], step_gpus: int
) -> tuple[Ladder, ...]:
    """Of each class of which ``queue`` has nominal quota, in steps of a node's GPUs or ``step_gpus``."""
    top = next(one for one in template.queues if one.name == queue)
    found = []
    for ladder in ladders(template, ()):
        nominal = top.quotas.get(ladder.gpu_class, m.Quota()).nominal
        step = step_gpus or ladder.node_gpus
        wanted = ((one, nominal + one * step) for one in sorted({0, *steps}))
        rungs = tuple(LadderStep(one, gpus) for one, gpus in wanted if gpus > 0)
        if nominal:
            found.append(replace(ladder, rungs=rungs))
    return tuple(found)


def with_quota(template: m.Snapshot, queue: str, gpu_class: str, gpus: int) -> m.Snapshot:
    """``alone_in`` with so many milli-GPU of nominal quota, and nodes for them."""
    queues = tuple(
        replace(one, quotas={**one.quotas, gpu_class: replace(one.quotas[gpu_class], nominal=gpus)})
        if one.name == queue
        else one
        for one in template.queues
    )
    world = replace(template, queues=queues)
    short = gpus - ready(world, gpu_class)
    if short <= 0:
        return world
    size = next(ladder.node_gpus for ladder in ladders(world, ()) if ladder.gpu_class == gpu_class)
    return QuestionChanges((CapacityChange(gpu_class, -(-short // size)),)).applied(world)


def only(past: LedgerPast, names: frozenset[str]) -> LedgerPast:
    """The work of these queues."""
    mine = [job.workload.queue in names for job in past.submissions]
    jobs = tuple(job for job, is_mine in zip(past.submissions, mine, strict=True) if is_mine)
    return replace(past, submissions=jobs, before=sum(mine[: past.before]))
