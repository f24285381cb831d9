"""Reclaims and preemptions as a matrix: from which queue, for which."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from portal.display.csv import Table
from portal.reports.evictions import Prices
from portal.reports.filters import OTHERS, OUTSIDE
from portal.reports.scope import Scope
from scheduling.models import EvictionRule

BETWEEN = (EvictionRule.RECLAIM.value, EvictionRule.PREEMPT.value)
"""Rules by which somebody else's wait caused it."""
SHOWN = 7
"""Queues with a line of their own in the matrix; the rest are one line."""


class EvictionRow(NamedTuple):
    """One eviction; fields in the order of COLUMNS."""

    at: datetime
    rule: str
    queue: int | None
    for_queue: int | None
    gpu_class: int
    gpus: int
    need: int
    lost_gpu_s: float
    cycle: int | None
    for_workload: int | None
    allowed_by: str
    in_vain: str


COLUMNS = (
    "at", "rule", "queue_id", "for_queue_id", "gpu_class_id", "gpus", "asked_gpus",
    "lost_gpu_s", "cycle_id", "for_workload_id", "allowed_by", "in_vain",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Losses:
    """What each eviction threw away: GPU-hours of whole GPUs, and their price where costs are read."""

    hours: list[float]
    costs: list[float] | None

    @classmethod
    def of(cls, scope: Scope, rows: Sequence[EvictionRow], known: Prices) -> Losses:
        weights = scope.unit.weights
        hours = [row.lost_gpu_s / 3600 * weights[row.gpu_class] for row in rows]
        costs = [known.cost(row.gpu_class, row.at, row.lost_gpu_s) for row in rows]
        paid = [cost for cost in costs if cost is not None]
        return cls(hours, paid if len(paid) == len(rows) else None)

    def cost(self, i: int) -> float:
        return self.costs[i] if self.costs is not None else 0.0


@dataclass(frozen=True)
class Matrix:
    """Reclaims and preemptions, evicted queue (row) for asking queue (column)."""

    names: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    lost: tuple[tuple[float, ...], ...]
    """GPU-hours."""
    costs: tuple[tuple[float, ...], ...] | None
    """Of what was lost; None where the person reads no costs."""
    reclaims: int
    preempts: int

    @property
    def row_sums(self) -> tuple[int, ...]:
        return tuple(sum(row) for row in self.counts)

    @property
    def column_sums(self) -> tuple[int, ...]:
        return tuple(sum(column) for column in zip(*self.counts, strict=True))

    @property
    def total(self) -> int:
        return sum(self.row_sums)

    @property
    def highest(self) -> int:
        return max((cell for row in self.counts for cell in row), default=0)


def matrix_of(scope: Scope, rows: Sequence[EvictionRow], losses: Losses) -> Matrix:
    pairs = {
        i: (_name(scope, row.queue), _name(scope, row.for_queue))
        for i, row in enumerate(rows)
        if row.rule in BETWEEN
    }
    names = _top_queues(Counter(pairs.values()))
    cells: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for i, (evicted, asking) in pairs.items():
        cell = cells[_fold(evicted, names), _fold(asking, names)]
        cell[0] += 1
        cell[1] += losses.hours[i]
        cell[2] += losses.cost(i)
    counts, hours, costs = (
        tuple(tuple(cells[row, column][k] for column in names) for row in names) for k in range(3)
    )
    rules = Counter(row.rule for row in rows)
    return Matrix(
        names,
        tuple(tuple(map(int, row)) for row in counts),
        hours,
        None if losses.costs is None else costs,
        rules[EvictionRule.RECLAIM],
        rules[EvictionRule.PREEMPT],
    )


def _name(scope: Scope, queue: int | None) -> str:
    known = None if queue is None else scope.queues.get(queue)
    return known.name if known else OUTSIDE


def _top_queues(pairs: Counter[tuple[str, str]]) -> tuple[str, ...]:
    """The queues most involved, most first by what was taken; then the rest as one, then outside."""
    involved: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for (evicted, asking), count in pairs.items():
        involved[evicted] += count
        involved[asking] += count if asking != evicted else 0
        taken[evicted] += count
    outside = involved.pop(OUTSIDE, 0)
    ranked = sorted(involved, key=lambda name: (-involved[name], name))
    names = ranked if len(ranked) <= SHOWN + 1 else ranked[:SHOWN]
    names = sorted(names, key=lambda name: (-taken[name], name))
    rest = [OTHERS] if len(ranked) > len(names) else []
    return (*names, *rest, *([OUTSIDE] if outside else []))


def _fold(name: str, shown: tuple[str, ...]) -> str:
    return name if name in shown else OTHERS


def matrix_table(matrix: Matrix, currency: str) -> Table:
    rows = [
        (
            evicted,
            asking,
            matrix.counts[i][j],
            matrix.lost[i][j],
            matrix.costs[i][j] if matrix.costs is not None else None,
        )
        for i, evicted in enumerate(matrix.names)
        for j, asking in enumerate(matrix.names)
        if matrix.counts[i][j]
    ]
    columns = ("evicted_from", "for", "evictions", "lost_gpu_hours", f"lost_{currency.lower()}")
    return Table("matrix", "Reclaims and preemptions, who for whom", columns, rows)
