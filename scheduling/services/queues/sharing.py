"""Subtrees that give out by merit what is above nominal: which they are, and what they may still evict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from scheduling.engine.merit.lead import EVICTIONS_PER_ARRIVAL
from scheduling.engine.model import Sharing
from scheduling.models import Eviction, Queue, Workload
from scheduling.models.queues import below

WINDOW = timedelta(days=7)
"""Of which arrivals and evictions are counted."""
SAID: Mapping[Sharing, str] = {
    Sharing.FAIR_SHARE: "GPUs above nominal are divided by weight; inside a queue work goes by priority,"
    " then by arrival.",
    Sharing.PROMISE: "No work is to end later than on the quota of its queue alone; what is above it goes by"
    " weight, to the least expected work first.",
    Sharing.THROUGHPUT: "The least expected work of all queues goes first: the shortest waits, with no weight"
    " and no promise to any queue.",
}
"""Each way to give out what is above nominal, in a sentence, wherever one is chosen."""


def name_of(way: Sharing) -> str:
    return way.value.replace("_", " ").capitalize()


def sharing_of(queues: Sequence[Queue], whole: Sharing) -> dict[int, tuple[Sharing, int | None]]:
    """By queue how it shares, and the highest queue that shares by merit with it, as ``encode`` reads it.
    ``whole`` is how the cluster does: it speaks for the root.
    """
    known = {q.pk: q for q in queues}
    found: dict[int, tuple[Sharing, int | None]] = {}

    def of(queue: Queue) -> tuple[Sharing, int | None]:
        if queue.pk not in found:
            parent = known.get(queue.parent_id or 0)
            above = of(parent) if parent else (whole, None)
            own = Sharing(queue.sharing) if parent and queue.sharing else above[0]
            is_own = above[1] is None and own is not Sharing.FAIR_SHARE
            found[queue.pk] = (own, queue.pk) if is_own else (above if above[1] else (own, None))
        return found[queue.pk]

    for queue in queues:
        of(queue)
    return found


def evictions_left(queues: Sequence[Queue], whole: Sharing, at: datetime) -> dict[int, float]:
    """By the top of each subtree that shares by merit. Queries only where there is one."""
    tops = {top for _, top in sharing_of(queues, whole).values() if top is not None}
    return {q.pk: _left_in(q, at) for q in queues if q.pk in tops}


def _left_in(top: Queue, at: datetime) -> float:
    inside = below(top.cluster_id, top.path, on="queue__")
    arrived = Workload.objects.filter(inside, submitted_at__gt=at - WINDOW).count()
    evicted = Eviction.objects.filter(inside, at__gt=at - WINDOW).count()
    return max(0.0, EVICTIONS_PER_ARRIVAL * arrived - evicted)


def leaves_by_merit(queues: Sequence[Queue], whole: Sharing) -> Mapping[str, Sharing]:
    """By name, of those whose subtree shares by merit."""
    shares = sharing_of(queues, whole)
    return {q.name: shares[q.pk][0] for q in queues if shares[q.pk][1] is not None}
