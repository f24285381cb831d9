"""The record of what each workload was told of its start, and why that changed.

Where no forecast names a time the reservation of the workload may: it tells by when, and no P50.

A row is written only where what is told moves by more than ``LEAST_MOVE`` and ``MOVE_SHARE`` of the way that
is left, and at most ``MOST`` of one workload are kept: its first and its newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max

from scheduling.models import (
    Cluster,
    ForecastChange,
    ForecastOutcome,
    Reason,
    StartForecast,
    ToldStart,
    Workload,
    headline,
)
from scheduling.models.workloads import WAITING
from scheduling.services.starts.causes import causes_of

MOST = 24
LEAST_MOVE = timedelta(minutes=10)
MOVE_SHARE = 0.25
BY_CHANCE = "Runs and arrivals drawn anew see it later."
NOT_KEPT = "No nodes are kept for it any longer"
BATCH = 200


@dataclass(frozen=True, slots=True)
class ToldTimes:
    """Of one start. ``p50_at`` is None where a reservation tells it, both where nothing does."""

    p50_at: datetime | None
    p90_at: datetime | None

    @classmethod
    def of(cls, row: StartForecast) -> ToldTimes:
        """By the forecast, else by the reservation that its workload has."""
        if row.p50_at is None or row.p90_at is None:
            work = row.workload
            return cls(None, work.until if work.reason == Reason.RESERVED else None)
        return cls(row.p50_at, row.p90_at)


@dataclass(frozen=True, slots=True)
class _ForecastChange:
    row: StartForecast
    before: ToldStart | None
    times: ToldTimes
    change: ForecastChange

    @property
    def breaks(self) -> bool:
        """Whether what was told before holds no longer."""
        if self.change is ForecastChange.LOST:
            return True
        was, now = self.before.p90_at if self.before else None, self.times
        first = now.p50_at or now.p90_at
        return self.change is ForecastChange.LATER and bool(was and first and first > was)

    @property
    def why_not(self) -> str:
        """Why no time is told of it; empty where one is."""
        if self.times.p90_at is not None:
            return ""
        was_kept = self.before is not None and self.before.p50_at is None
        if not (was_kept and self.row.workload.reason):
            return self.row.why_not
        return f"{NOT_KEPT}: {headline(self.row.workload.reason).lower()}."


def note(cluster: Cluster, forecasts: Iterable[StartForecast], now: datetime) -> int:
    """Write down what ``forecasts`` tell that is news; how many rows. Three queries where nothing is."""
    last = _last(cluster)
    news = []
    for row in forecasts:
        before = _of_this_wait(last.get(row.workload_id), row.workload)
        times = ToldTimes.of(row)
        if change := changed(before, times, now):
            news.append(_ForecastChange(row, before, times, change))
    if not news:
        return 0
    ToldStart.objects.bulk_create(_rows(news, now), BATCH)
    _prune([one.row.workload_id for one in news])
    return len(news)


def _last(cluster: Cluster) -> dict[int, ToldStart]:
    """The newest of each that waits."""
    waiting = ToldStart.objects.filter(workload__cluster=cluster, workload__state__in=WAITING)
    newest = waiting.order_by().values("workload").annotate(last=Max("pk")).values("last")
    return {row.workload_id: row for row in ToldStart.objects.filter(pk__in=newest)}


def _of_this_wait(before: ToldStart | None, work: Workload) -> ToldStart | None:
    """What was told before its last run was told of another wait."""
    is_over = before is not None and work.started_at is not None and work.started_at >= before.at
    return None if is_over else before


def changed(before: ToldStart | None, times: ToldTimes, now: datetime) -> ForecastChange | None:
    """How ``times`` differ from ``before``; None where that is no news."""
    was = before.p90_at if before else None
    if times.p90_at is None:
        return None if was is None else ForecastChange.LOST
    if before is None or was is None:
        return ForecastChange.FIRST
    for to, from_ in ((times.p50_at, before.p50_at), (times.p90_at, was)):
        if to is None or from_ is None:
            continue
        if abs(to - from_) > max(LEAST_MOVE, MOVE_SHARE * (to - now)):
            return ForecastChange.LATER if to > from_ else ForecastChange.SOONER
    return None


def _rows(news: Sequence[_ForecastChange], now: datetime) -> list[ToldStart]:
    later = [one for one in news if one.change is ForecastChange.LATER]
    causes = dict(zip(map(id, later), _causes(later, now), strict=True))
    return [_row(one, causes.get(id(one), ("", one.why_not)), now) for one in news]


def _row(one: _ForecastChange, cause: tuple[str, str], now: datetime) -> ToldStart:
    return ToldStart(
        workload=one.row.workload,
        at=now,
        p50_at=one.times.p50_at,
        p90_at=one.times.p90_at,
        change=one.change,
        breaks=one.breaks,
        cause=cause[0],
        note=cause[1],
    )


def _causes(later: Sequence[_ForecastChange], now: datetime) -> list[tuple[str, str]]:
    """As of starts that came late, between both tellings: what ran past the P50 of before counts."""
    outcomes = [_as_outcome(one, now) for one in later]
    found = causes_of(outcomes, mark="P50") if outcomes else []
    # It waits still: what is told of starts that came is told of the time since.
    return [
        (cause, said.replace("before it started", "since") or BY_CHANCE) for cause, said in found
    ]


def _as_outcome(one: _ForecastChange, now: datetime) -> ForecastOutcome:
    at = one.before.at if one.before else now
    p50_at = (one.before.p50_at or one.before.p90_at if one.before else None) or now
    return ForecastOutcome(
        workload=one.row.workload,
        told_at=at,
        p90_s=max(0.0, (p50_at - at).total_seconds()),
        gpu_class=one.row.gpu_class,
        started_at=now,
    )


def _prune(works: Iterable[int]) -> None:
    rows = ToldStart.objects.filter(workload__in=list(works)).order_by()
    many = rows.values("workload").annotate(count=Count("pk")).filter(count__gt=MOST)
    for work in many.values_list("workload", flat=True):
        pks = list(ToldStart.objects.filter(workload=work).values_list("pk", flat=True))
        ToldStart.objects.filter(pk__in=pks[1 : len(pks) - MOST + 1]).delete()
