"""Fragmentation: free GPUs that neither what waits nor what usually runs can use, now and over time.

Free and fragmented count the GPUs of the whole cluster, as the overview does; what waited for whole room
counts the work of the queues, the user and the type that were chosen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Count, Sum

from portal.accounts.models import User
from portal.display.csv import Cell, Table
from portal.display.format import counted, gpus, gpus_counted
from portal.display.periods import HOUR_S, Floats, Periods, epochs
from portal.display.spread import share
from portal.display.units import unit
from portal.reports import samples
from portal.reports.evictions import evictions_in
from portal.reports.filters import ReportFilters
from portal.reports.longest import waited
from portal.reports.samples import best_resolution
from portal.reports.scope import Scope, Unit, report_scope
from portal.teams.access import own_queues
from scheduling.models import (
    MILLI,
    Cluster,
    Consolidation,
    EvictionRule,
    GpuClass,
    Node,
    Queue,
    Share,
    UsageSample,
)
from scheduling.services.explain.fragmentation import MemberSizes, left_over

SHOWN = 8
CAUSE = "fragmented"


@dataclass(frozen=True, slots=True)
class ClassNow:
    """Free GPUs of one class (its own, milli): kept back + usable + fragmented."""

    gpu_class: GpuClass
    free: int
    kept_back: int
    fragmented: int
    split: tuple[tuple[int, int], ...]
    """(fragmented on one node, nodes with so much), the largest first."""
    wanted: int
    """The member that counts; 0 where nobody asks."""
    is_pending: bool
    """Whether it waits; else it is what usually runs."""

    @property
    def usable(self) -> int:
        return self.free - self.kept_back - self.fragmented

    @property
    def because(self) -> str:
        """'2 + 1 + 1 on 3 nodes; the smallest that waits needs 4 on one'."""
        if not self.free:
            return "nothing is free"
        if not self.wanted:
            return "nothing waits or runs that asks for one"
        size = gpus_counted(self.wanted, unit(self.gpu_class))
        wants = (
            f"what waits needs {size}" if self.is_pending else f"what usually runs asks for {size}"
        )
        if not self.fragmented:
            return f"{wants} on a node, and whole ones fit"
        return f"{self._split()}; {wants} on a node"

    def _split(self) -> str:
        nodes = sum(count for _, count in self.split)
        parts = [gpus(each) for each, count in self.split for _ in range(count)]
        if len(parts) > 5:
            parts = [*parts[:4], "…"]
        return f"{' + '.join(parts)} on {counted(nodes, 'node')}"


@dataclass(frozen=True, slots=True)
class ScatteredNode:
    """A node with free GPUs of no use; milli-GPU."""

    node: Node
    free: int
    fragmented: int


@dataclass(frozen=True, slots=True)
class FragmentedMeans:
    """Mean fragmented GPUs of a class by period, in whole GPUs; NaN where nobody looked."""

    name: str
    position: int
    means: Floats


@dataclass(frozen=True)
class FragmentationReport:
    filters: ReportFilters
    cluster: Cluster
    unit: Unit
    now: tuple[ClassNow, ...]
    nodes: tuple[ScatteredNode, ...]
    """Those with most first."""
    periods: Periods
    lines: tuple[FragmentedMeans, ...]
    mean: float | None
    """Fragmented GPUs over the range; None where nobody looked."""
    mean_before: float | None
    ready: float
    """GPU-hours of the time in which somebody looked."""
    hours: float
    """Fragmented GPU-hours."""
    waited_hours: float
    waited_count: int
    waited_share: float
    """Of all waiting."""
    moved: int
    moved_lost: float
    """Evictions to consolidate, and the GPU-hours that they lost."""
    orders: tuple[Consolidation, ...]

    @property
    def is_empty(self) -> bool:
        return not self.now

    @property
    def share(self) -> float | None:
        """Of what was ready."""
        return share(self.hours, self.ready)

    def of_now(self, name: str) -> float:
        """``free``, ``kept_back``, ``usable`` or ``fragmented`` of all classes, in whole GPUs (milli)."""
        weights = self.unit.weights
        return sum(getattr(row, name) * weights[row.gpu_class.pk] for row in self.now)

    def tables(self) -> tuple[Table, ...]:
        return _now_table(self), _days_table(self), _node_table(self), _order_table(self)

    def as_dict(self) -> dict[str, Any]:
        return {
            "report": "fragmentation",
            "filters": self.filters.as_dict(),
            "note": self.unit.note,
            "mean_fragmented_gpus": self.mean,
            "mean_fragmented_gpus_before": self.mean_before,
            "fragmented_gpu_hours": round(self.hours, 3),
            "share_of_ready": self.share,
            "waited_hours": round(self.waited_hours, 3),
            "waited_workloads": self.waited_count,
            "consolidated": self.moved,
            "consolidated_lost_gpu_hours": round(self.moved_lost, 3),
            **{table.name: table.as_dicts() for table in self.tables()},
        }


def fragmentation(cluster: Cluster, filters: ReportFilters, user: User) -> FragmentationReport:
    """What of the free GPUs of ``cluster`` was of no use in the range. Raises as ``report_scope`` does."""
    scope = report_scope(cluster, filters, user)
    now, nodes = _now(scope)
    periods = Periods.of(filters.start, filters.end, filters.tz)
    seen = _samples(_whole(scope), filters)
    hours, ready = seen.gpu_hours(scope.unit.weights)
    waits = [one for one in waited(scope, filters) if one.total_s > 0]
    scattered = [one.by_cause.get(CAUSE, 0.0) for one in waits]
    evicted = evictions_in(scope, filters).filter(rule=EvictionRule.CONSOLIDATE)
    moved = evicted.aggregate(count=Count("pk"), lost=Sum("lost_gpu_s"))
    return FragmentationReport(
        filters=filters,
        cluster=cluster,
        unit=scope.unit,
        now=now,
        nodes=nodes,
        periods=periods,
        lines=_lines(scope, seen, periods),
        mean=seen.mean(scope.unit.weights),
        mean_before=_before(scope, filters),
        ready=ready,
        hours=hours,
        waited_hours=sum(scattered) / HOUR_S,
        waited_count=sum(seconds > 0 for seconds in scattered),
        waited_share=share(sum(scattered), sum(one.total_s for one in waits)) or 0.0,
        moved=moved["count"],
        moved_lost=(moved["lost"] or 0.0) / HOUR_S,
        orders=_orders(scope, filters, user),
    )


def _now(scope: Scope) -> tuple[tuple[ClassNow, ...], tuple[ScatteredNode, ...]]:
    sizes, kept_back = MemberSizes(scope.cluster), _kept_back(scope)
    found: dict[int, list[ScatteredNode]] = defaultdict(list)
    rows = Node.objects.filter(
        cluster=scope.cluster, ready=True, gpu_class__in=list(scope.classes)
    ).select_related("gpu_class")
    wanted = {pk: sizes.wanted(c) for pk, c in scope.classes.items()}
    for node in rows:
        lost = left_over(node.free_gpus, wanted[node.gpu_class_id])
        found[node.gpu_class_id].append(ScatteredNode(node, node.free_gpus, lost))
    now = tuple(
        _class_now(c, found[pk], kept_back.get(pk, 0), wanted[pk], sizes.is_pending(c))
        for pk, c in scope.classes.items()
    )
    worst = [one for places in found.values() for one in places if one.fragmented]
    worst.sort(key=lambda one: (-one.fragmented, one.node.name))
    return now, tuple(worst)


def _class_now(
    c: GpuClass, places: list[ScatteredNode], kept_back: int, wanted: int, is_pending: bool
) -> ClassNow:
    free = sum(place.free for place in places)
    fragmented = sum(place.fragmented for place in places)
    split = Counter(place.fragmented for place in places if place.fragmented)
    return ClassNow(
        gpu_class=c,
        free=free,
        kept_back=min(kept_back, free - fragmented),
        fragmented=fragmented,
        split=tuple(sorted(split.items(), reverse=True)),
        wanted=wanted,
        is_pending=is_pending,
    )


def _kept_back(scope: Scope) -> dict[int, int]:
    """Idle nominal that lending limits withhold, by class."""
    top = Queue.objects.filter(cluster=scope.cluster, parent__parent=None, parent__isnull=False)
    rows = Share.objects.filter(queue__in=top).order_by().values_list("gpu_class_id")
    return dict(rows.annotate(kept=Sum("kept_back")))


@dataclass(frozen=True, slots=True)
class _Samples:
    """Samples of the root in which somebody looked, as columns; milli-GPU."""

    starts_s: Floats
    classes: Floats
    seconds: Floats
    fragmented: Floats
    ready: Floats

    def of_class(self, pk: int) -> _Samples:
        chosen = self.classes == pk
        return _Samples(*(column[chosen] for column in (
            self.starts_s, self.classes, self.seconds, self.fragmented, self.ready,
        )))  # fmt: skip

    def gpu_hours(self, weights: Mapping[int, float]) -> tuple[float, float]:
        """(fragmented, ready) of whole GPUs."""
        weighed = self.seconds * np.array([weights[int(pk)] for pk in self.classes])
        per_hour = MILLI * HOUR_S
        return (
            float((self.fragmented * weighed).sum()) / per_hour,
            float((self.ready * weighed).sum()) / per_hour,
        )

    def mean(self, weights: Mapping[int, float]) -> float | None:
        """Whole GPUs: the sum over classes of each one's mean."""
        found = [
            weights[int(pk)] * float(np.average(one.fragmented, weights=one.seconds)) / MILLI
            for pk in np.unique(self.classes)
            for one in [self.of_class(int(pk))]
        ]
        return sum(found) if found else None


def _whole(scope: Scope) -> Scope:
    """The root, whatever subtree was chosen: nodes belong to no queue."""

    def make() -> Scope:
        root = scope.cluster.queues.filter(parent=None)
        return Scope(scope.cluster, {queue.pk: queue for queue in root}, scope.classes)

    return scope.once("whole", make)


def _samples(whole: Scope, filters: ReportFilters) -> _Samples:
    resolution = best_resolution(whole, filters)
    rows = UsageSample.objects.filter(
        queue__in=list(whole.queues), gpu_class__in=list(whole.classes), resolution=resolution or "",
        start__gte=filters.start, start__lt=filters.end, fragmented_gpus__isnull=False,
    ).order_by("start")  # fmt: skip
    columns = ("start", "gpu_class_id", "seconds", "fragmented_gpus", "ready_gpus")
    found = list(zip(*rows.values_list(*columns), strict=True)) or [()] * len(columns)
    return _Samples(epochs(found[0]), *(np.array(column, dtype=np.float64) for column in found[1:]))


def _lines(scope: Scope, seen: _Samples, periods: Periods) -> tuple[FragmentedMeans, ...]:
    lines = []
    for pk, c in scope.classes.items():
        one = seen.of_class(pk)
        index, count = periods.index(one.starts_s), len(periods.starts)
        covered = np.bincount(index, one.seconds, count)
        summed = np.bincount(index, one.seconds * one.fragmented, count)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = summed / covered / MILLI * scope.unit.weights[pk]
        lines.append(FragmentedMeans(c.name, c.position, means))
    return tuple(lines)


def _before(scope: Scope, filters: ReportFilters) -> float | None:
    """None where none is compared with, or nobody looked at all of it."""
    earlier = filters.before()
    if not filters.compare:
        return None
    seen = _samples(_whole(scope), earlier)
    if not len(seen.starts_s) or seen.starts_s[0] > samples.reaching(earlier).timestamp():
        return None
    return seen.mean(scope.unit.weights)


def _orders(scope: Scope, filters: ReportFilters, user: User) -> tuple[Consolidation, ...]:
    """Of the cluster's operators, so told to whoever reports on the whole of it."""
    if not own_queues(user).filter(cluster=scope.cluster, parent=None).exists():
        return ()
    rows = Consolidation.objects.filter(
        cluster=scope.cluster, gpu_class__in=list(scope.classes),
        asked_at__gte=filters.start, asked_at__lt=filters.end,
    ).select_related("gpu_class", "cluster")  # fmt: skip
    return tuple(rows)


def _now_table(report: FragmentationReport) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            row.gpu_class.name, row.free / MILLI, row.kept_back / MILLI, row.usable / MILLI,
            row.fragmented / MILLI, row.wanted / MILLI, row.because,
        )
        for row in report.now
    ]  # fmt: skip
    columns = (
        "gpu_class", "free_gpus", "kept_back_gpus", "usable_gpus", "fragmented_gpus",
        "wanted_gpus_on_a_node", "because",
    )  # fmt: skip
    return Table("now", "Free GPUs now", columns, rows)


def _days_table(report: FragmentationReport) -> Table:
    rows = [
        (start, line.name, None if np.isnan(line.means[i]) else float(line.means[i]))
        for i, start in enumerate(report.periods.starts)
        for line in report.lines
    ]
    title = f"Mean fragmented GPUs by {report.periods.unit}"
    return Table("days", title, ("start", "gpu_class", "fragmented_gpus"), rows)


def _node_table(report: FragmentationReport) -> Table:
    rows = [
        (one.node.name, one.node.gpu_class.name, one.free / MILLI, one.fragmented / MILLI)
        for one in report.nodes
    ]
    columns = ("node", "gpu_class", "free_gpus", "fragmented_gpus")
    return Table("nodes", "Nodes with fragmented GPUs now", columns, rows)


def _order_table(report: FragmentationReport) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            one.asked_at, one.author, one.gpu_class.name, one.nodes, one.stands, len(one.moves),
            lost_of(one),
        )
        for one in report.orders
    ]  # fmt: skip
    columns = ("asked_at", "author", "gpu_class", "nodes", "state", "moves", "lost_gpu_hours")
    return Table("consolidations", "Consolidations that were ordered", columns, rows)


def lost_of(order: Consolidation) -> float:
    """GPU-hours that its moves lost."""
    return (
        sum(float(move.get("lost_gpu_s") or 0.0) for move in order.moves if move.get("moved"))
        / HOUR_S
    )
