"""All queues one may see as a table: to find one, and to compare them by any figure. Milli-GPU.

As a tree the lines below a queue add up to it; sorted by a figure only the lowest queues stand there. Either
way what the person may not see is a line of its own, so the sums agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, Q

from portal.accounts.models import User
from portal.display.sums import NumericLine
from portal.display.units import gpus_each, unit
from portal.selectors.overview import depth_first
from portal.teams.reading import seen_of
from portal.web.frame.division import shares_of, tree_of
from portal.web.frame.revision_cache import remembered
from portal.web.sorting import Column, Sort
from scheduling.models import Cluster, GpuClass, Queue, Workload
from scheduling.models.workloads import HOLDING, WAITING

TREE: Final = Sort("tree")
COLUMNS: Final = (
    Column("Queue", "tree"),
    Column("Nominal", "nominal", number=True, falls=True),
    Column("Fair share", "fair_share", number=True, falls=True),
    Column("Held", "held", number=True, falls=True),
    Column("Above / below", "excess", number=True, falls=True),
    Column("Pending", "waiting", number=True, falls=True),
    Column("Workloads run", "running_count", number=True, falls=True),
    Column("Workloads wait", "waiting_count", number=True, falls=True),
)


@dataclass(frozen=True, slots=True)
class Amounts(NumericLine):
    nominal: float = 0
    fair_share: float = 0
    held: float = 0
    waiting: float = 0
    running_count: int = 0
    waiting_count: int = 0

    @property
    def excess(self) -> float:
        return self.held - self.fair_share


@dataclass(frozen=True, slots=True)
class TreeLine:
    """``queue`` None: what the person may not see, ``others`` queues of it."""

    amounts: Amounts
    depth: int = 0
    queue: Queue | None = None
    others: int = 0
    is_inner: bool = False


@dataclass(frozen=True, slots=True)
class QueueTable:
    gpu_class: GpuClass | None
    """None: all classes, in GPUs."""
    lines: Sequence[TreeLine]
    total: Amounts
    is_tree: bool

    @property
    def unit(self) -> str:
        return unit(self.gpu_class) if self.gpu_class else "GPUs"


def queue_table(
    cluster: Cluster, user: User, classes: Sequence[GpuClass], chosen: GpuClass | None, by: Sort
) -> QueueTable:
    """What is the same for everybody is read once a revision, by three queries."""
    every = tree_of(cluster)
    seen = seen_of(user, every)
    counted = [chosen] if chosen else classes
    key = ("amounts", chosen.pk if chosen else None)
    amounts = remembered.of(cluster, key, lambda: _amounts(cluster, every, counted, chosen))
    table = _Table(every, seen, amounts)
    lines = list(table.tree()) if by == TREE else table.flat(by)
    return QueueTable(chosen, lines, table.total, by == TREE)


def _amounts(
    cluster: Cluster, every: Sequence[Queue], classes: Iterable[GpuClass], chosen: GpuClass | None
) -> dict[int, Amounts]:
    """By queue, inner ones with everything below them."""
    found: dict[int, Amounts] = defaultdict(Amounts)
    shares = shares_of(cluster)
    for gpu_class in classes:
        each = 1.0 if chosen else float(gpus_each(gpu_class))
        for queue_id, share in shares.get(gpu_class.pk, {}).items():
            found[queue_id] += Amounts(
                nominal=each * share.nominal,
                fair_share=each * share.fair_share,
                held=each * share.allocated,
                waiting=each * share.pending,
            )
    above = {queue.pk: queue.parent_id for queue in every}
    for queue_id, running, waiting in _counts(cluster, chosen):
        at: int | None = queue_id
        while at is not None:
            found[at] += Amounts(running_count=running, waiting_count=waiting)
            at = above.get(at)
    return found


def _counts(cluster: Cluster, chosen: GpuClass | None) -> Iterable[tuple[int, int, int]]:
    """(queue, how many run, how many wait). A count tells nothing of anybody's work."""
    work = Workload.objects.filter(cluster=cluster).exclude(queue=None).order_by()
    holds, waits = Q(state__in=HOLDING), Q(state__in=WAITING)
    if chosen is None:
        return work.values_list("queue").annotate(
            running=Count("pk", filter=holds), waiting=Count("pk", filter=waits)
        )
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    rows = work.filter(holds | waits).values_list("queue", "state", "gpu_class", "gpu_classes")
    for queue, state, class_id, wish, count in rows.annotate(count=Count("pk")):
        if state in WAITING and (not wish or chosen.name in wish):
            sums[queue or 0][1] += count
        elif state in HOLDING and class_id == chosen.pk:
            sums[queue or 0][0] += count
    return [(queue, *both) for queue, both in sums.items()]  # type: ignore[misc]


class _Table:
    def __init__(
        self, every: Sequence[Queue], seen: set[int], amounts: Mapping[int, Amounts]
    ) -> None:
        self.every, self.seen, self.amounts = every, seen, amounts
        self.below: dict[int | None, list[Queue]] = defaultdict(list)
        for queue in every:
            self.below[queue.parent_id].append(queue)
        self.root = next((queue for queue in every if queue.is_root), None)

    @property
    def total(self) -> Amounts:
        return self._sum(self.below[self.root.pk]) if self.root else Amounts()

    def _sum(self, queues: Iterable[Queue]) -> Amounts:
        return sum((self._of(queue) for queue in queues), Amounts())

    def _of(self, queue: Queue) -> Amounts:
        return self.amounts.get(queue.pk, Amounts())

    def tree(self) -> Iterator[TreeLine]:
        """Depth first; after the queues below one, the line of those that are not shown."""
        placed = depth_first([queue for queue in self.every if queue.pk in self.seen])
        open_: list[tuple[Queue, int]] = [(self.root, -1)] if self.root else []
        for queue, depth in placed:
            while len(open_) > 1 and open_[-1][1] >= depth:
                yield from self._others(*open_.pop())
            yield TreeLine(self._of(queue), depth, queue, is_inner=bool(self.below[queue.pk]))
            open_.append((queue, depth))
        for queue, depth in reversed(open_):
            yield from self._others(queue, depth)

    def _others(self, queue: Queue, depth: int) -> Iterator[TreeLine]:
        hidden = [kid for kid in self.below[queue.pk] if kid.pk not in self.seen]
        if hidden:
            yield TreeLine(self._sum(hidden), depth + 1, others=len(hidden))

    def flat(self, by: Sort) -> list[TreeLine]:
        leaves = [q for q in self.every if not self.below[q.pk] and not q.is_root]
        shown = [q for q in leaves if q.pk in self.seen]
        lines = [TreeLine(self._of(queue), queue=queue) for queue in shown]
        lines.sort(key=lambda line: (line.queue or self.every[0]).path)
        lines.sort(key=lambda line: self._key(line, by), reverse=by.falls)
        rest = len(leaves) - len(shown)
        if rest:
            lines.append(TreeLine(self.total - self._sum(shown), others=rest))
        return lines

    @staticmethod
    def _key(line: TreeLine, by: Sort) -> Any:
        return getattr(line.amounts, by.key)
