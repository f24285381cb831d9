"""What was told of starts, and what came of it: the correction learns from it, and pages show it.

A forecast is written down when a workload is first seen waiting and every hour after, also where it is too
wide to be told: a correction that learned from what it lets be told alone would never hear that it went too
far. Work that starts in the cycle that first sees it is never forecast, so never scored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, QuerySet

from scheduling.models import MILLI, Cluster, ForecastOutcome, GpuClass, State, TaskPass, Workload
from scheduling.models.workloads import WAITING
from scheduling.services.starts.causes import causes_of
from scheduling.services.tables.bulk import write_columns
from scheduling.services.tables.passes import keep, last_of
from scheduling.simulation.ahead.bands import Band
from scheduling.simulation.ahead.correction import (
    Correction,
    ForecastKind,
    JudgedForecast,
    correction_from,
)

AGAIN = timedelta(hours=1)
REMEMBERED = timedelta(days=28)
"""What the correction learns from was told within so long."""
LEARNED = 2000
"""So many of those forecasts at most, evenly over that time."""
NAIVE_STARTS = 50
TASK = "correct forecasts"


def correction_of(cluster: Cluster, now: datetime) -> Correction:
    """From what was told of late: what came of it by ``now``, or that it waits still. Within the hour that
    which a pass has kept: levels move by the hour.
    """
    known = last_of(cluster, TASK)
    return _correction(known) if known.mark == _hour(now) else _learned(cluster, now)


def keep_correction(cluster: Cluster, now: datetime) -> Correction:
    """The same, and kept for whoever asks next."""
    known = last_of(cluster, TASK)
    if known.mark == _hour(now):
        return _correction(known)
    made = _learned(cluster, now)
    keep(cluster, TASK, _hour(now), {kind.name: reach for kind, reach in made.reach.items()})
    return made


def _hour(now: datetime) -> str:
    return f"{now:%F %H}"


def _correction(known: TaskPass) -> Correction:
    return Correction(
        {ForecastKind[name]: (middle, far) for name, (middle, far) in dict(known.found).items()}
    )


def _learned(cluster: Cluster, now: datetime) -> Correction:
    """A part of what waits is taken as large as of what has started, else it would lean to either. Two
    queries.
    """
    outcomes = ForecastOutcome.objects.filter(
        workload__cluster=cluster, told_at__gt=now - REMEMBERED, told_at__lt=now
    )
    each = -(-max(1, outcomes.count()) // LEARNED)
    some = outcomes.annotate(turn=F("id") % each).filter(turn=0).order_by("id")
    return correction_from(_outcomes(some, now), now.timestamp())


def _outcomes(outcomes: Iterable[ForecastOutcome], now: datetime) -> Iterable[JudgedForecast]:
    for one in outcomes:
        started = one.started_at is not None and one.started_at <= now
        until = one.started_at if started and one.started_at else now
        yield outcome_of(one, until, started=started)


def outcome_of(one: ForecastOutcome, until: datetime, *, started: bool) -> JudgedForecast:
    """A forecast as the correction learns from it: it waited until then, and started there or waits still."""
    raw, band = Band(one.raw_p50_s, one.raw_p90_s), Band(one.p50_s, one.p90_s)
    waited_s = (until - one.told_at).total_seconds()
    kind = ForecastKind.of(one.gpus / MILLI, first=one.at_submission)
    return JudgedForecast(raw, one.told_at.timestamp(), waited_s, started, band, kind)


def settle(cluster: Cluster, since: datetime | None = None) -> int:
    """Note the starts of forecasts that have come true, and why the late ones were; how many.

    With ``since``, of what started or ended from then on alone: rows are read of those, not of all that wait.
    """
    waits = ForecastOutcome.objects.filter(workload__cluster=cluster, started_at=None)
    come = waits.filter(workload__first_started_at__isnull=False)
    gone = waits.filter(workload__state=State.FINISHED, workload__first_started_at=None)
    if since is not None:
        rows = Workload.objects.filter(cluster=cluster).order_by()
        # By key: the planner of a database may rather read all that wait.
        come = come.filter(workload__in=_keys(rows.filter(first_started_at__gte=since)))
        gone = gone.filter(workload__in=_keys(rows.filter(finished_at__gte=since)))
    ready = list(come.select_related("workload"))
    for one in ready:
        one.started_at = max(one.told_at, one.workload.first_started_at or one.told_at)
    late = [one for one in ready if one.at_submission and (one.came_s or 0) > one.p90_s]
    for one, (cause, note) in zip(late, causes_of(late), strict=True):
        one.cause, one.note = cause, note
    if ready:
        with transaction.atomic():
            write_columns(ready, ["started_at", "cause", "note"])
    gone.delete()
    return len(ready)


def _keys(rows: QuerySet[Workload]) -> list[int]:
    return list(rows.values_list("pk", flat=True))


def note(
    cluster: Cluster,
    forecasts: Sequence[tuple[Workload, Band, Band, GpuClass | None]],
    now: datetime,
) -> None:
    """Write down (workload, raw, corrected, class) of those that are new, or were told long ago."""
    # What ran before waits anew: its first start is no start of this wait.
    first = [one for one in forecasts if one[0].first_started_at is None]
    lately = _told_since(cluster, now - AGAIN)
    wanted = [one for one in first if one[0].pk not in lately]
    known = _ever_told([row for row, *_ in wanted])
    naive = naive_waits(cluster, now) if len(known) < len(wanted) else {}
    fresh = [
        ForecastOutcome(
            workload=row,
            at_submission=row.pk not in known,
            told_at=now,
            p50_s=band.p50_s,
            p90_s=band.p90_s,
            raw_p50_s=raw.p50_s,
            raw_p90_s=raw.p90_s,
            naive_s=naive.get(size_of(row)),
            gpu_class=gpu_class,
            gpus=row.requested_gpus,
        )
        for row, raw, band, gpu_class in wanted
    ]
    ForecastOutcome.objects.bulk_create(fresh, batch_size=200)


def _told_since(cluster: Cluster, at: datetime) -> set[int]:
    """Work that was told after ``at``."""
    outcomes = ForecastOutcome.objects.filter(
        workload__cluster=cluster, told_at__gt=at, started_at=None
    )
    return set(outcomes.order_by().values_list("workload", flat=True))


def told_before(cluster: Cluster, now: datetime) -> set[int]:
    """Work that waits and was told first an hour ago or longer: until then what is told counts as first."""
    first = ForecastOutcome.objects.filter(
        workload__cluster=cluster, at_submission=True, told_at__lte=now - AGAIN
    )
    waits = first.filter(workload__state__in=WAITING)
    return set(waits.order_by().values_list("workload", flat=True))


def _ever_told(rows: Sequence[Workload]) -> set[int]:
    first = ForecastOutcome.objects.filter(
        workload__in=[row.pk for row in rows], at_submission=True
    )
    return set(first.order_by().values_list("workload", flat=True))


Size = tuple[str, int]


def size_of(row: Workload) -> Size:
    """First class that it asks for, and whole GPUs to the next power of two."""
    gpus = max(1, -(-row.requested_gpus // 1000))
    return next(iter(row.gpu_classes), ""), (gpus - 1).bit_length()


def naive_waits(cluster: Cluster, now: datetime) -> Mapping[Size, float]:
    """Of what has started by now."""
    started = Workload.objects.filter(cluster=cluster, first_started_at__lte=now)
    return naive_of(reversed(started.order_by("-first_started_at")[:LEARNED]))


def naive_of(started: Iterable[Workload]) -> Mapping[Size, float]:
    """Median wait of the last of ``started`` by class and size, without those that did not wait."""
    waits: dict[Size, deque[float]] = {}
    for row in started:
        assert row.first_started_at is not None  # noqa: S101 - only those that started are asked about
        waited_s = (row.first_started_at - row.submitted_at).total_seconds()
        if waited_s > 60:
            waits.setdefault(size_of(row), deque(maxlen=NAIVE_STARTS)).append(waited_s)
    return {size: sorted(found)[len(found) // 2] for size, found in waits.items()}
