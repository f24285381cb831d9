"""The single evictions behind the figures: each with its loss in money, and what became of its victim."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from portal.accounts.models import User
from portal.display.csv import Cell, Table
from portal.reports import prices
from portal.reports.filters import OUTSIDE, ReportFilters
from portal.reports.scope import Scope
from portal.reports.timelines import batched, workload_filter
from portal.teams.reading import Reading
from scheduling.models import MILLI, Cluster, Eviction, GpuClass, State, Transition, Workload
from scheduling.services.ledger.prices import PricePeriod
from scheduling.services.words.rules import cause_of, label_of
from scheduling.services.words.sentences import (
    OTHERS_QUEUE,
    Reader,
    may_name,
    name_of,
    queue_of,
    readable,
)

FEW, SHOWN = 8, 25
"""Evictions on the page: of all pairs, and of one; and workloads that were evicted again."""
PARTIES = ("workload__queue", "queue", "for_queue", "for_workload__queue", "gpu_class", "cycle")


@dataclass(frozen=True, slots=True)
class Single:
    """One eviction as the person may read it. ``gpus`` and ``lost`` (GPU-hours) count whole GPUs; ``cost`` is
    None where the person reads no costs."""

    eviction: Eviction
    name: str
    queue: str
    winner: str
    for_queue: str
    gpus: float
    lost: float
    cost: float | None
    sentence: str
    again_s: float | None
    """From the eviction until it ran again; None where it did not."""

    @property
    def workload(self) -> Workload:
        return self.eviction.workload

    @property
    def queues(self) -> tuple[str, str]:
        """Names of its queue and of the one it left for, without what is above them."""
        return self.queue.rpartition("/")[2], self.for_queue.rpartition("/")[2]

    @property
    def rule(self) -> str:
        """What allowed it."""
        return label_of(self.eviction.rule, self.eviction.allowed_by)

    @property
    def in_vain(self) -> str:
        """Why whom it made room for did not get it; '' where it did, or still may."""
        return cause_of(self.eviction)

    @property
    def fate(self) -> str:
        """What became of a victim that did not run again."""
        work = self.workload
        if self.again_s is not None:
            return ""
        return "ended without running again" if work.state == State.FINISHED else "waits"


@dataclass(frozen=True, slots=True)
class Again:
    """A workload that was evicted more than once in the range, with all its evictions in order."""

    singles: tuple[Single, ...]

    @property
    def first(self) -> Single:
        return self.singles[0]

    @property
    def times(self) -> int:
        return len(self.singles)

    @property
    def lost(self) -> float:
        return sum(one.lost for one in self.singles)

    @property
    def cost(self) -> float | None:
        costs = [one.cost for one in self.singles if one.cost is not None]
        return sum(costs) if costs else None

    @property
    def chain(self) -> list[tuple[str, str]]:
        """(rule, for whom) of each; a run of the same is told once with its count."""
        found: list[tuple[str, str, int]] = []
        for one in self.singles:
            rule, whom = one.rule, one.queues[1]
            if found and found[-1][:2] == (rule, whom):
                found[-1] = (rule, whom, found[-1][2] + 1)
            else:
                found.append((rule, whom, 1))
        return [(rule if n == 1 else f"{n} × {rule}", whom) for rule, whom, n in found]


class Prices:
    """Of a GPU (or slice) hour, by class and moment; nothing where the person reads no costs."""

    def __init__(self, scope: Scope, filters: ReportFilters, user: User) -> None:
        self._parts: list[PricePeriod] = []
        if prices.may_read(user, scope):
            self._parts = prices.stretches(scope, filters.start, filters.end)

    def cost(self, gpu_class: int, at: datetime, lost_gpu_s: float) -> float | None:
        for part in reversed(self._parts):
            if at >= part.start:
                return lost_gpu_s / 3600 * part.prices[gpu_class]
        return None


def evictions_in(scope: Scope, filters: ReportFilters) -> QuerySet[Eviction]:
    """Those of the range from the queues and classes of ``scope``, of the chosen user and type."""
    return Eviction.objects.filter(
        workload_filter(filters, "workload__"),
        queue__in=list(scope.queues),
        gpu_class__in=list(scope.classes),
        at__gte=filters.start,
        at__lt=filters.end,
    )


@dataclass(frozen=True)
class EvictionList:
    """The evictions of a report, narrowed to the pair of queues that the filters name."""

    scope: Scope
    filters: ReportFilters
    reader: Reader
    prices: Prices

    @classmethod
    def of(cls, scope: Scope, filters: ReportFilters, user: User, known: Prices) -> EvictionList:
        return cls(scope, filters, Reading(user), known)

    def _rows(self) -> QuerySet[Eviction]:
        rows = evictions_in(self.scope, self.filters).select_related(*PARTIES)
        if self.filters.evicted:
            rows = rows.filter(queue__in=self._named(self.filters.evicted))
        if self.filters.asking == OUTSIDE:
            rows = rows.filter(for_workload__isnull=False).exclude(for_queue__in=self._named(""))
        elif self.filters.asking:
            rows = rows.filter(for_queue__in=self._named(self.filters.asking))
        return rows

    def _named(self, name: str) -> list[int]:
        return [pk for pk, queue in self.scope.queues.items() if name in {"", queue.name}]

    def newest(self, count: int = SHOWN) -> list[Single]:
        return self._singles(self._rows().order_by("-at", "-pk")[:count])

    def count(self) -> int:
        return self._rows().count()

    def again(self) -> list[Again]:
        """Those evicted most often, and of the same number those that lost most."""
        counts = Counter(evictions_in(self.scope, self.filters).values_list("workload", flat=True))
        most = [pk for pk, n in counts.most_common(SHOWN) if n > 1]
        rows = evictions_in(self.scope, self.filters).filter(workload__in=most)
        by_work: dict[int, list[Single]] = defaultdict(list)
        for one in self._singles(rows.select_related(*PARTIES).order_by("at", "pk")):
            by_work[one.eviction.workload_id].append(one)
        found = [Again(tuple(singles)) for singles in by_work.values()]
        return sorted(found, key=lambda one: (-one.times, -one.lost, one.first.name))

    def table(self) -> Table:
        unit = self.scope.cluster.currency.lower()
        columns = (
            "at", "rule", "workload", "evicted_from", "for_workload", "for", "gpu_class", "gpus",
            "asked_gpus", "lost_gpu_hours", f"lost_{unit}", "ran_again_after_s", "sentence", "cycle",
            "allowed_by", "in_vain",
        )  # fmt: skip
        rows = [_cells(one) for one in self._singles(self._rows().order_by("at", "pk"))]
        return Table("evictions", "Single evictions", columns, rows)

    def _singles(self, rows: Iterable[Eviction]) -> list[Single]:
        found = list(rows)
        back = _ran_again(found)
        return [self._one(row, back.get(row.pk)) for row in found]

    def _one(self, row: Eviction, again_s: float | None) -> Single:
        weight = self.scope.unit.weights[row.gpu_class_id or 0]
        return Single(
            eviction=row,
            name=name_of(row.workload, self.reader) or "",
            queue=queue_of(row.queue, self.reader) or "",
            winner=name_of(row.for_workload, self.reader) or "",
            for_queue=queue_of(row.for_queue, self.reader) or _nobody(row),
            gpus=row.gpus / MILLI * weight,
            lost=row.lost_gpu_s / 3600 * weight,
            cost=self.prices.cost(row.gpu_class_id or 0, row.at, row.lost_gpu_s),
            sentence=readable(row, self.reader).sentence
            if may_name(row.workload, self.reader)
            else "",
            again_s=again_s,
        )


def _nobody(row: Eviction) -> str:
    """Whom a queue that is gone evicted for is not known; others evict for nobody."""
    return OTHERS_QUEUE if row.for_workload_id else ""


def _ran_again(rows: Sequence[Eviction]) -> Mapping[int, float]:
    """Seconds from each eviction to the next run of its workload."""
    runs: dict[int, list[datetime]] = defaultdict(list)
    for some in batched(dict.fromkeys(row.workload_id for row in rows), 5000):
        found = Transition.objects.filter(workload__in=some, to_state=State.RUNNING)
        for pk, at in found.order_by("at", "pk").values_list("workload_id", "at"):
            runs[pk].append(at)
    back = {}
    for row in rows:
        later = next((at for at in runs[row.workload_id] if at > row.at), None)
        if later is not None:
            back[row.pk] = (later - row.at).total_seconds()
    return back


def _cells(one: Single) -> tuple[Cell, ...]:
    row = one.eviction
    return (
        row.at, row.rule, one.name, one.queue, one.winner, one.for_queue, _class(row.gpu_class),
        one.gpus, row.asked_gpus / MILLI, one.lost, one.cost, one.again_s, one.sentence,
        row.cycle.number if row.cycle else None, row.allowed_by, row.in_vain,
    )  # fmt: skip


def _class(gpu_class: GpuClass | None) -> str:
    return gpu_class.name if gpu_class else ""


def money_of(cluster: Cluster, cost: float | None) -> dict[str, Any]:
    """The loss as JSON has it: null where the person reads no costs."""
    amount = None if cost is None else round(cost, 2)
    return {"lost_cost": amount, "currency": cluster.currency}
