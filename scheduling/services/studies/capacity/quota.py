"""A queue and what is below it, alone on its own quota: nothing is borrowed from others, nothing lent.

The nodes are those of the cluster, and more where the quota that is tried is larger: what bounds the queue is
its quota, and the limits of the queues below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from scheduling.engine import model as m
from scheduling.services.ledger.past import Past
from scheduling.services.studies.capacity.ladder import Ladder, Rung, ladders
from scheduling.services.whatif.changes import Changes
from scheduling.services.whatif.kinds import CapacityChange
from scheduling.services.whatif.now import ready


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
        rungs = tuple(Rung(one, gpus) for one, gpus in wanted if gpus > 0)
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
    return Changes((CapacityChange(gpu_class, -(-short // size)),)).applied(world)


def only(past: Past, names: frozenset[str]) -> Past:
    """The work of these queues."""
    mine = [job.workload.queue in names for job in past.submissions]
    jobs = tuple(job for job, is_mine in zip(past.submissions, mine, strict=True) if is_mine)
    return replace(past, submissions=jobs, before=sum(mine[: past.before]))
