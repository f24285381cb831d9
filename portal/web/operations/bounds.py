"""The guardrails of the policy: how much of each is used, and which are near."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, FloatField, Sum
from django.db.models.functions import Cast

from portal.display.format import number
from scheduling.models import MILLI, Cluster, Eviction, State
from scheduling.services.cycle.run import LAG_S

NEAR = 0.8
DAY = timedelta(hours=24)
SLOW_MS = 2000
BUDGETS = 4


@dataclass(frozen=True, slots=True)
class Bound:
    """``note`` says what counts; the words are ``used`` of ``most``, in ``unit``."""

    name: str
    note: str
    used: float
    most: float
    unit: str = ""

    @property
    def part(self) -> float:
        """Of the bound, at most all of it."""
        return min(1.0, self.used / self.most) if self.most else 1.0

    @property
    def near(self) -> bool:
        return self.part >= NEAR

    @property
    def words(self) -> str:
        digits = 0 if float(self.used).is_integer() and float(self.most).is_integer() else 1
        text = f"{number(self.used, digits)} of {number(self.most, digits)}"
        return f"{text} {self.unit}".strip()

    @property
    def standing(self) -> str:
        """How near it is, or by how much past."""
        left = self.most - self.used
        text = number(abs(left), 0 if float(left).is_integer() else 1)
        return f"Near, {text} left" if left >= 0 else f"Past by {text}"


def bounds_of(cluster: Cluster, slowest_ms: float, lag_s: float | None) -> list[Bound]:
    """Those nearest to their bound first. Four queries at most."""
    since = cluster.now() - DAY
    found = [
        *_budgets(cluster, since),
        *_one_workload(cluster, since),
        *_per_asked(cluster, since),
        Bound(
            "Slowest cycle", "of all in 24 h; above it starts come late", slowest_ms / 1000, 2, "s"
        ),
    ]
    if lag_s is not None:
        note = "out of touch with the cluster; past it nothing is planned"
        found.append(Bound("Age of the mirror", note, lag_s, LAG_S, "s"))
    return sorted(found, key=lambda bound: -bound.part)


def near_of(bounds: Sequence[Bound]) -> list[Bound]:
    return [bound for bound in bounds if bound.near]


def _budgets(cluster: Cluster, since: datetime) -> Iterator[Bound]:
    queues = list(cluster.queues.filter(eviction_budget_gpus__isnull=False))
    if not queues:
        return
    gone = dict(
        Eviction.objects.filter(queue__in=queues, at__gt=since)
        .order_by()
        .values_list("queue")
        .annotate(Sum("gpus"))
    )
    rows = [(gone.get(queue.pk, 0), queue) for queue in queues]
    rows.sort(key=lambda row: -row[0] / max(1, row[1].eviction_budget_gpus or 1))
    for used, queue in rows[:BUDGETS]:
        most = (queue.eviction_budget_gpus or 0) / MILLI
        yield Bound(f"Eviction budget, {queue}", "evicted in 24 h", used / MILLI, most, "GPUs")


def _one_workload(cluster: Cluster, since: datetime) -> Iterator[Bound]:
    if cluster.max_evictions is None:
        return
    live = Eviction.objects.filter(workload__cluster=cluster, at__gt=since)
    counts = live.exclude(workload__state=State.FINISHED).order_by().values_list("workload__name")
    worst = counts.annotate(count=Count("pk")).order_by("-count", "workload__name").first()
    name, used = worst or ("no live workload was evicted in 24 h", 0)
    note = (
        f"{name}; past it gives back only what nominal owes"
        if used >= cluster.max_evictions
        else name
    )
    yield Bound("Evictions of one workload in 24 h", note, used, cluster.max_evictions)


def _per_asked(cluster: Cluster, since: datetime) -> Iterator[Bound]:
    if cluster.eviction_cap is None:
        return
    evictions = Eviction.objects.filter(workload__cluster=cluster, at__gt=since, asked_gpus__gt=0)
    worst = (
        evictions.order_by()
        .values("cycle", "for_workload", "for_workload__name", "asked_gpus")
        .annotate(ratio=Cast(Sum("gpus"), FloatField()) / F("asked_gpus"))
        .order_by("-ratio")
        .first()
    )
    note = f"worst in 24 h, for {worst['for_workload__name']}" if worst else "none in 24 h"
    yield Bound(
        "Evicted per GPU asked for", note, worst["ratio"] if worst else 0, cluster.eviction_cap
    )
