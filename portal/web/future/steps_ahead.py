"""What a queue will hold, were every start and end to come at its P50, of what is known now. Milli-GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf

from portal.display.entitlement import Figures, axis
from portal.display.format import gpus, when, zone
from portal.display.steps import Frame, Sample, StepChart, area, line, line_labels
from portal.selectors.queue import RunningWorkload
from portal.web.ahead import Ahead
from scheduling.models import Share, Workload
from scheduling.services.starts.tell import predicted_start

MOST = timedelta(days=1)
"""How far the page of a queue looks; the page of its future looks further."""

Level = tuple[datetime, float]
"""(from when, how much is held)."""
End = tuple[datetime, int]
Start = tuple[datetime, int, float | None]
"""(when, how much, for how many seconds where that is known)."""


def levels(
    allocated: int, ends: Iterable[End], starts: Iterable[Start], over: Ahead
) -> list[Level]:
    """In order of time, now first, as far as ``over`` reaches."""
    moves = [(at, -size) for at, size in ends]
    for at, size, run_s in starts:
        moves.append((at, size))
        if run_s:
            moves.append((at + timedelta(seconds=run_s), -size))
    total, found = float(allocated), [(over.now, float(allocated))]
    for at, size in sorted(moves):
        total += size
        if over.now <= at <= over.end:
            found.append((at, max(0.0, total)))
    return found


@dataclass(frozen=True, kw_only=True)
class StepsAhead(StepChart):
    text: str
    """The same as one sentence, for those who can't see it."""


def steps_ahead(
    waiting: Sequence[Workload],
    running: Iterable[RunningWorkload],
    share: Share,
    now: datetime,
    zone_name: str,
) -> StepsAhead | None:
    """Of ``waiting``, its forecasts at hand, what is foreseen on the class of ``share``, and of ``running``
    what has an end; no more than the limit, as ends that nobody knows would let it pass that. None where no
    start is forecast within ``MOST``. No query."""
    rows = ((work, getattr(work, "start_forecast", None)) for work in waiting)
    here = [(work, row) for work, row in rows if row and row.gpu_class_id == share.gpu_class_id]
    known = ((work, row.run_s, predicted_start(row, now)) for work, row in here)
    starts = [
        (one.p50 or now, work.requested_gpus, run_s) for work, run_s, one in known if one.is_told
    ]
    ends = [(max(now, row.ends[0]), row.workload.allocated_gpus) for row in running if row.ends]
    left = [at + timedelta(seconds=run_s) for at, _, run_s in starts if run_s]
    moments = [*(at for at, _, _ in starts), *left, *(at for at, _ in ends)]
    over = Ahead.over((at for at in moments if at <= now + MOST), now)
    most = share.limit if share.limit is not None else inf
    steps = [(at, min(level, most)) for at, level in levels(share.allocated, ends, starts, over)]
    is_near = any(at <= over.end for at, _, _ in starts)
    return _chart(steps, share, over, zone_name) if is_near else None


def _chart(steps: Sequence[Level], share: Share, over: Ahead, zone_name: str) -> StepsAhead:
    top = max(share.fair_share, share.nominal, *(level for _, level in steps))
    begin = over.now.astimezone(zone(zone_name))
    frame = Frame(begin, over.end, axis([Figures(top, 0, 0, top, top)]))
    usage = frame.stretches(_samples(steps, over.end))
    lines = [
        ("fair share", share.fair_share),
        ("nominal", share.nominal),
        ("planned", steps[-1][1]),
    ]
    return StepsAhead(
        axis=frame.axis,
        days=[(tick.at, tick.text) for tick in over.ticks(zone_name, origin="now")],
        area=area(usage),
        allocated=line(usage),
        fair_share=_level(frame, share.fair_share),
        nominal=_level(frame, share.nominal),
        labels=line_labels(frame, lines, gap=18),
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
