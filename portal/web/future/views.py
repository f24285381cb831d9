"""A queue's future: its runs, its pending work and its capacity on one axis of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, QuerySet, Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from portal.accounts.models import User
from portal.display.units import unit
from portal.selectors.queue import subtree
from portal.teams.access import is_operator, visible_queues, visible_workloads
from portal.web.ahead import Ahead, Box
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.future.steps_ahead import levels
from portal.web.overview.views import class_of_queue
from scheduling.models import Cluster, ForecastRun, GpuClass, Node, Queue, StartForecast, Workload
from scheduling.models.workloads import HOLDING, WAITING
from scheduling.services.starts.accuracy import HORIZONS, Share, held_of
from scheduling.services.starts.tell import PredictedStart, predicted_start

MOST = 40
MOST_MOVES = 6
PANEL_PX = 96
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PredictedEnd:
    """A run, its predicted end, and who starts with it most often."""

    work: Workload
    p50: datetime
    p90: datetime
    box: Box
    goes_to: Sequence[Workload]


@dataclass(frozen=True, slots=True)
class LikelyStart:
    work: Workload
    forecast: StartForecast | None
    said: PredictedStart
    box: Box | None
    after: Workload | None


@dataclass(frozen=True, slots=True)
class Move:
    """If ``run`` (None: one that the reader does not see) ends late, about ``ends``, the P50 of the start of
    ``work`` goes from ``begin`` to ``to``."""

    work: Workload
    run: Workload | None
    ends: datetime
    begin: datetime
    to: datetime


@dataclass(frozen=True, slots=True)
class Future:
    now: datetime
    axis: Ahead
    ends: Sequence[PredictedEnd]
    starts: Sequence[LikelyStart]
    open_ended: int
    """Milli-GPU of runs that no end is in sight of."""
    allocated: int
    pending: int
    free_p50: str
    fan: str
    most_free: int
    held_line: str
    held_area: str
    held_end: float
    ready: float
    ready_y: float
    top: float
    now_y: float
    end_y: float
    ready_label_y: float
    """Where the labels of the planned line stand, in pixels."""
    trust: Sequence[tuple[str, Share]]
    trust_all: Share | None
    moves: Sequence[Move]
    run: ForecastRun | None


def future(cluster: Cluster, queue: Queue, user: User, gpu_class: GpuClass, ready: float) -> Future:
    now = cluster.now()
    run = ForecastRun.objects.filter(cluster=cluster).first()
    mine = visible_workloads(user).filter(subtree(queue)).select_related("queue", "gpu_class")
    running = list(mine.filter(state__in=HOLDING, gpu_class=gpu_class))
    waiting = _waiting(mine, gpu_class)
    seen = {work.pk for work in [*running, *waiting]}
    forecasts = _forecasts(waiting)
    spans = _spans(running, run)
    axis = _axis(spans, forecasts, now)
    ends = _ends(running, spans, forecasts, waiting, axis, seen)
    allocated = sum(work.allocated_gpus for work in running)
    free = {p: _free(ends, p, axis) for p in ("p50", "p90")}
    most_free = max([1000, sum(end.work.allocated_gpus for end in ends)])
    planned = _planned(allocated, ends, waiting, forecasts, axis)
    top = max([ready, 1000.0, *(value for _, value in planned)])
    shares = held_of(cluster, now)
    return Future(
        now=now,
        axis=axis,
        ends=ends,
        starts=[_start(work, forecasts.get(work.pk), axis, seen, now) for work in waiting],
        open_ended=allocated - sum(end.work.allocated_gpus for end in ends),
        allocated=allocated,
        pending=sum(work.requested_gpus for work in waiting),
        free_p50=_steps(free["p50"], most_free),
        fan=_between(free["p50"], free["p90"], most_free),
        most_free=most_free,
        held_line=_steps(planned, top),
        held_area=f"0,100 {_steps(planned, top)} 100,100",
        held_end=planned[-1][1],
        ready=ready,
        ready_y=100 - 100 * ready / top,
        top=top,
        now_y=_label_y(allocated, top),
        end_y=_label_y(planned[-1][1], top),
        ready_label_y=_label_y(ready, top),
        trust=_trust(shares, gpu_class),
        trust_all=shares.get((gpu_class.name, -1)),
        moves=_moves(cluster, run, forecasts, waiting, visible_workloads(user)),
        run=run,
    )


def _forecasts(waiting: Iterable[Workload]) -> dict[int, StartForecast]:
    rows = StartForecast.objects.filter(workload__in=waiting).select_related("after")
    return {row.workload_id: row for row in rows}


def _axis(
    spans: dict[int, tuple[datetime, datetime]], forecasts: dict[int, StartForecast], now: datetime
) -> Ahead:
    """Wide enough for the P50 of ends and the P90 of starts."""
    late_starts = [row.p90_at for row in forecasts.values() if row.p90_at]
    return Ahead.over([*(p50 for p50, _ in spans.values()), *late_starts], now)


def _trust(shares: Mapping[tuple[str, int], Share], gpu_class: GpuClass) -> list[tuple[str, Share]]:
    """By how far ahead was told; only where something was told and has come."""
    return [
        (label, shares[gpu_class.name, i])
        for i, label in enumerate(HORIZONS)
        if (gpu_class.name, i) in shares
    ]


def _label_y(value: float, top: float) -> float:
    """Just below the line at ``value``, within the panel."""
    at = PANEL_PX * (1 - value / top)
    return min(PANEL_PX - 4.0, max(11.0, at + 14))


def _waiting(mine: Iterable[Workload], gpu_class: GpuClass) -> list[Workload]:
    """By predicted start, then in planned order; of those that accept several classes the ones that the
    first leads here."""
    rows = mine.filter(state__in=WAITING).order_by(  # type: ignore[attr-defined]
        F("start_forecast__p50_at").asc(nulls_last=True), F("position").asc(nulls_last=True), "id"
    )
    return [w for w in rows if not w.gpu_classes or w.gpu_classes[0] == gpu_class.name][:MOST]


def _spans(
    running: Iterable[Workload], run: ForecastRun | None
) -> dict[int, tuple[datetime, datetime]]:
    if run is None:
        return {}
    return {
        work.pk: (
            run.at + timedelta(seconds=run.ends[work.uid][0]),
            run.at + timedelta(seconds=run.ends[work.uid][1]),
        )
        for work in running
        if work.uid in run.ends
    }


def _moves(
    cluster: Cluster,
    run: ForecastRun | None,
    forecasts: dict[int, StartForecast],
    waiting: Sequence[Workload],
    seen: QuerySet[Workload],
) -> list[Move]:
    """Of those shown here, the largest first. The told P50 moves by the factor that the futures have."""
    by_uid = {work.uid: work for work in waiting}
    moves = [one for one in (run.moves if run else ()) if one["workload"] in by_uid]
    runs = {
        work.uid: work
        for work in seen.filter(cluster=cluster, uid__in=[one["run"] for one in moves])
    }
    found = []
    for one in moves:
        work = by_uid[one["workload"]]
        row = forecasts.get(work.pk)
        if row is None or row.p50_at is None or run is None:
            continue
        if predicted_start(row, cluster.now()).p50 is None:
            continue
        times = one["late_start_s"] / max(1, one["start_s"])
        found.append(
            Move(
                work=work,
                run=runs.get(one["run"]),
                ends=run.at + timedelta(seconds=one["late_end_s"]),
                begin=row.p50_at,
                to=row.at + times * (row.p50_at - row.at),
            )
        )
    return sorted(found, key=lambda move: move.begin - move.to)[:MOST_MOVES]


def _ends(
    running: Sequence[Workload],
    spans: dict[int, tuple[datetime, datetime]],
    forecasts: dict[int, StartForecast],
    waiting: Sequence[Workload],
    axis: Ahead,
    seen: set[int],
) -> list[PredictedEnd]:
    """Those whose end is in sight, the first first."""
    goes_to: dict[int, list[Workload]] = {}
    for work in waiting:
        row = forecasts.get(work.pk)
        if row is not None and row.after_id:
            goes_to.setdefault(row.after_id, []).append(work)
    found = []
    for work in running:
        if work.pk in spans:
            p50, p90 = (max(axis.now, at) for at in spans[work.pk])
            if p50 <= axis.end:
                found.append(
                    PredictedEnd(work, p50, p90, axis.box(p50, p90), goes_to.get(work.pk, ()))
                )
    return sorted(found, key=lambda end: (end.p50, end.work.pk))


def _start(
    work: Workload, row: StartForecast | None, axis: Ahead, seen: set[int], now: datetime
) -> LikelyStart:
    start = predicted_start(row, now)
    box = axis.box(start.p50 or now, start.p90, row.run_s) if row and start.p90 else None
    after = row.after if row and row.after_id in seen else None
    return LikelyStart(work, row, start, box, after)


def _free(ends: Sequence[PredictedEnd], which: str, axis: Ahead) -> list[Point]:
    """(percent of the axis, milli-GPU that have come free by then)."""
    total, points = 0.0, [(0.0, 0.0)]
    for end in sorted(ends, key=lambda one: getattr(one, which)):
        total += end.work.allocated_gpus
        if getattr(end, which) <= axis.end:
            points.append((axis.x(getattr(end, which)), total))
    return [*points, (100.0, points[-1][1])]


def _planned(
    allocated: int,
    ends: Sequence[PredictedEnd],
    waiting: Sequence[Workload],
    forecasts: dict[int, StartForecast],
    axis: Ahead,
) -> list[Point]:
    found = []
    for work in waiting:
        row = forecasts.get(work.pk)
        one = predicted_start(row, axis.now)
        if row is not None and one.p90 is not None:
            found.append((one.p50 or axis.now, work.requested_gpus, row.run_s))
    leaving = ((end.p50, end.work.allocated_gpus) for end in ends)
    points = [(axis.x(at), gpus) for at, gpus in levels(allocated, leaving, found, axis)]
    return [*points, (100.0, points[-1][1])]


def _steps(points: Sequence[Point], top: float) -> str:
    """Points of a polyline in a box of 100 by 100: level, then up or down."""
    drawn, level = [], points[0][1]
    for x, value in points:
        drawn.append((x, level))
        drawn.append((x, value))
        level = value
    return " ".join(f"{x:.2f},{100 - 100 * value / top:.2f}" for x, value in drawn)


def _between(upper: Sequence[Point], lower: Sequence[Point], top: float) -> str:
    back = _steps(lower, top).split(" ")
    return f"{_steps(upper, top)} {' '.join(reversed(back))}"


@page_view
def queue_future(request: PersonRequest, cluster: str, queue: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    of = get_object_or_404(visible_queues(request.user), cluster=found, name=queue)
    classes = list(found.gpu_classes.all())
    chosen = class_of_queue(request, of, classes)
    context = {
        "cluster": found,
        "queue": of,
        "above": of.path.split("/")[:-1],
        "classes": classes,
        "chosen": chosen,
        "is_operator": is_operator(request.user),
    }
    if chosen is not None:
        shown = future(found, of, request.user, chosen, _ready(found, chosen))
        context |= {
            "future": shown,
            "unit": unit(chosen),
            "ticks": shown.axis.ticks(found.display_time_zone, origin="now"),
        }
    return render(request, "web/future/future.html", context)


def _ready(cluster: Cluster, gpu_class: GpuClass) -> float:
    ready = Node.objects.filter(cluster=cluster, gpu_class=gpu_class, ready=True)
    return float(ready.aggregate(gpus=Sum(F("gpus") - F("foreign_gpus")))["gpus"] or 0)
