"""What a queue will hold, were every start and end to come at its P50, of what is known now. Milli-GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q

from portal.accounts.models import User
from portal.display.entitlement import Axis, Figures, axis
from portal.display.format import gpus, when, zone
from portal.display.steps import Frame, Sample, apart, area, line
from portal.selectors.queue import subtree
from portal.teams.access import visible_workloads
from portal.web.ahead import Ahead
from scheduling.models import ForecastRun, GpuClass, Queue, Share
from scheduling.models.workloads import HOLDING, WAITING

MOST = timedelta(days=1)
"""How far the page of a queue looks; the page of its future looks further."""

Level = tuple[datetime, float]
"""(from when, how much is held)."""
End = tuple[datetime, int]
Start = tuple[datetime, int, float | None]
"""(when, how much, for how many seconds where that is known)."""


def levels(held: int, ends: Iterable[End], starts: Iterable[Start], over: Ahead) -> list[Level]:
    """In order of time, now first, as far as ``over`` reaches."""
    moves = [(at, -size) for at, size in ends]
    for at, size, run_s in starts:
        moves.append((at, size))
        if run_s:
            moves.append((at + timedelta(seconds=run_s), -size))
    total, found = float(held), [(over.now, float(held))]
    for at, size in sorted(moves):
        total += size
        if over.now <= at <= over.end:
            found.append((at, max(0.0, total)))
    return found


@dataclass(frozen=True, slots=True)
class PlannedSteps:
    """The step chart: paths in a box of 100 by 100, ticks, labels at the lines kept apart."""

    axis: Axis
    days: Sequence[tuple[str, str]]
    """(place, time) of each tick."""
    area: str
    allocated: str
    fair_share: str
    nominal: str
    labels: Sequence[tuple[str, str, float]]
    text: str
    """The same as one sentence, for those who can't see it."""
    until: datetime


@dataclass(frozen=True, slots=True)
class _Known:
    held: int
    ends: Sequence[End]
    starts: Sequence[Start]


def planned(
    queue: Queue, user: User, gpu_class: GpuClass, share: Share, zone_name: str
) -> PlannedSteps | None:
    """Of the next hours, of what ``user`` sees; None where no start and no end is forecast in them. Two
    queries."""
    now = queue.cluster.now()
    known = _known(queue, user, gpu_class, now)
    moments = [*(at for at, _ in known.ends), *(at for at, _, _ in known.starts)]
    over = Ahead.over((at for at in moments if at <= now + MOST), now)
    steps = levels(known.held, known.ends, known.starts, over)
    return _drawn(steps, share, over, zone_name) if len(steps) > 1 else None


def _known(queue: Queue, user: User, gpu_class: GpuClass, now: datetime) -> _Known:
    """A time that has passed is no time to come: what was due by now ends, or starts, now."""
    run = ForecastRun.objects.filter(cluster=queue.cluster).only("at", "ends").first()
    known = run.ends if run else {}
    rows = _rows(queue, user, gpu_class)
    holding = [row for row in rows if row["state"] in HOLDING]
    ends = [
        (max(now, run.at + timedelta(seconds=known[row["uid"]][0])), row["gpus"] * row["members"])
        for row in holding
        if run and row["uid"] in known
    ]
    starts = [
        (max(now, row["p50_at"]), row["gpus"] * row["min_members"], row["run_s"])
        for row in rows
        if row["state"] in WAITING and row["p90_at"] > now
    ]
    return _Known(sum(row["gpus"] * row["members"] for row in holding), ends, starts)


def _rows(queue: Queue, user: User, gpu_class: GpuClass) -> Sequence[Mapping[str, Any]]:
    """What holds the class, and what waits and is foreseen to start on it."""
    holds = Q(state__in=HOLDING, gpu_class=gpu_class)
    foreseen = Q(start_forecast__gpu_class=gpu_class, start_forecast__p50_at__isnull=False)
    mine = visible_workloads(user).filter(subtree(queue))
    found = mine.filter(holds | Q(state__in=WAITING) & foreseen).annotate(
        p50_at=F("start_forecast__p50_at"),
        p90_at=F("start_forecast__p90_at"),
        run_s=F("start_forecast__run_s"),
    )
    named = ("uid", "state", "gpus", "members", "min_members", "p50_at", "p90_at", "run_s")
    return list(found.values(*named))


def _drawn(steps: Sequence[Level], share: Share, over: Ahead, zone_name: str) -> PlannedSteps:
    top = max(share.fair_share, share.nominal, *(level for _, level in steps))
    begin = over.now.astimezone(zone(zone_name))
    frame = Frame(begin, over.end, axis([Figures(top, 0, 0, top, top)]))
    held = frame.stretches(_samples(steps, over.end))
    lines = [
        ("fair share", share.fair_share),
        ("nominal", share.nominal),
        ("planned", steps[-1][1]),
    ]
    places = apart([frame.y(value) for _, value in lines], gap=18)
    return PlannedSteps(
        axis=frame.axis,
        days=[(tick.at, tick.text) for tick in over.ticks(zone_name, origin="now")],
        area=area(held),
        allocated=line(held),
        fair_share=_level(frame, share.fair_share),
        nominal=_level(frame, share.nominal),
        labels=[(name, gpus(value), y) for (name, value), y in zip(lines, places, strict=True)],
        text=", then ".join(
            f"{gpus(level)} from {when(at, over.now, zone_name)}" for at, level in steps
        ),
        until=over.end,
    )


def _samples(steps: Sequence[Level], end: datetime) -> list[Sample]:
    nexts = [at for at, _ in steps[1:]]
    return [
        Sample(at, (until - at).total_seconds(), level)
        for (at, level), until in zip(steps, [*nexts, end], strict=True)
        if until > at
    ]


def _level(frame: Frame, value: float) -> str:
    whole = (frame.end - frame.begin).total_seconds()
    return line(frame.stretches([Sample(frame.begin, whole, value)]))
