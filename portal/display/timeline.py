"""The state timeline of one workload: where on one line of time its past stands. Pure geometry.

Positions are percent of the width, so the picture follows the page without scaling its text. Which
labels have room is worked out for a wide and a narrow page; each label says where it may stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from portal.display.format import duration, gpus_counted, when, zone
from portal.display.line_labels import LineLabel, roomy

WIDE_PX, NARROW_PX = 1080, 320
MOST_TICKS = 7
AHEAD = 0.14
"""Room right of now, as a part of the whole line."""

WAITING, ADMITTED, RUNNING, LEAVING = "waiting", "admitted", "running", "leaving"
KIND = {
    "pending": WAITING,
    "requeued": WAITING,
    "admitted": ADMITTED,
    "running": RUNNING,
    "evicted": LEAVING,
}
WORD = {WAITING: "Pending", ADMITTED: "Admitted", RUNNING: "Running", LEAVING: "Leaving"}

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
TICK_STEPS_S = (
    *(_MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * n for n in (1, 2, 3, 6, 12)),
    *(_DAY * n for n in (1, 2, 4, 7, 14, 28, 91, 182, 364, 1820)),
)


Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class StateChange:
    """From ``at`` on it is in ``state`` and holds ``gpus`` milli-GPU, which are GPUs or slices."""

    at: datetime
    state: str
    gpus: int = 0
    unit: str = "GPUs"


@dataclass(frozen=True, slots=True)
class Stretch:
    kind: str
    start: datetime
    end: datetime
    gpus: int
    unit: str
    x: float = 0
    width: float = 0

    @property
    def text(self) -> str:
        size = (
            f" on {gpus_counted(self.gpus, self.unit)}"
            if self.kind == RUNNING and self.gpus
            else ""
        )
        return f"{WORD[self.kind]} {duration(self.end - self.start)}{size}"


@dataclass(frozen=True, slots=True)
class Timeline:
    stretches: Sequence[Stretch]
    above: Sequence[LineLabel]
    evicted: Sequence[float]
    below: Sequence[LineLabel]
    ticks: Sequence[LineLabel]
    now: float | None
    """Where now stands; None once it is finished."""
    band: tuple[float, float, float] | None
    """What is predicted, an end or a start: P50, P90 and the width between them."""
    text: str
    """The same as one sentence, for those who can't see it."""


def draw(
    steps: Sequence[StateChange],
    *,
    now: datetime,
    zone_name: str,
    finished: datetime | None = None,
    ends: Span | None = None,
    starts: Span | None = None,
) -> Timeline:
    """The line of ``steps`` (in order of time, at least one).

    ``ends`` are P50 and P90 of the predicted end of what runs now, ``starts`` of the start of what waits;
    left out where nobody predicts.
    """
    ahead = ends or starts
    until = finished or max(now, steps[-1].at)
    stretches = list(_stretches(steps, until))
    scale = _Scale.over(stretches[0].start, until, finished is not None, ends, starts)
    placed = [_place(stretch, scale) for stretch in stretches]
    lost = [s for s in steps if s.state == "evicted"]
    return Timeline(
        stretches=placed,
        above=_roomy(_above(placed, None if finished else scale.x(until))),
        evicted=[scale.x(step.at) for step in lost],
        below=_roomy(_below(lost, scale, ahead, "ends" if ends else "starts", now, zone_name)),
        ticks=_roomy(_ticks(scale, zone_name)),
        now=None if finished else scale.x(until),
        band=_band(ahead, scale) if ahead else None,
        text=", then ".join(_in_words(s) for s in placed) + (", finished" if finished else ", now"),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    start: datetime
    seconds: float

    @classmethod
    def over(
        cls, start: datetime, until: datetime, done: bool, ends: Span | None, starts: Span | None
    ) -> _Scale:
        """A start to come stands on the line as a whole; a far end leaves room for what was."""
        past = max(1.0, (until - start).total_seconds())
        length = past if done else past / (1 - AHEAD)
        if starts:
            length = max(length, 1.04 * (starts[1] - start).total_seconds())
        if ends:
            length = max(length, min(1.04 * (ends[1] - start).total_seconds(), 3 * past + 3600))
        return cls(start, length)

    @property
    def end(self) -> datetime:
        return self.start + timedelta(seconds=self.seconds)

    def x(self, at: datetime) -> float:
        part = (at - self.start).total_seconds() / self.seconds
        return round(100 * min(1.0, max(0.0, part)), 3)


def _stretches(steps: Sequence[StateChange], until: datetime) -> Iterator[Stretch]:
    """Neighbouring steps of one kind and size are one stretch."""
    current: Stretch | None = None
    for step in steps:
        kind = KIND.get(step.state)
        if current is not None and (kind, step.gpus) != (current.kind, current.gpus):
            yield replace(current, end=min(step.at, until))
            current = None
        if current is None and kind is not None:
            current = Stretch(kind, step.at, until, step.gpus, step.unit)
    if current is not None:
        yield current


def _place(stretch: Stretch, scale: _Scale) -> Stretch:
    x = scale.x(stretch.start)
    return replace(stretch, x=x, width=round(scale.x(stretch.end) - x, 3))


def _above(stretches: Sequence[Stretch], now: float | None) -> Iterator[LineLabel]:
    """Most important first: now, then the longest."""
    by_length = sorted(stretches, key=lambda s: -s.width)
    if now is not None:
        last = stretches[-1]
        yield _toward_room(now, f"now, {last.text[0].lower()}{last.text[1:]}")
        by_length = [s for s in by_length if s is not last]
    for stretch in by_length:
        room_px = stretch.width / 100 * WIDE_PX
        if LineLabel(0, stretch.text).length_px < room_px:
            yield LineLabel(stretch.x + stretch.width / 2, stretch.text, "middle")
        else:
            yield LineLabel(stretch.x, stretch.text)


def _toward_room(x: float, text: str) -> LineLabel:
    """Right of ``x`` where that fits a narrow page, else left of it."""
    right = LineLabel(x + 0.4, text)
    if right.x + right.length_px / NARROW_PX * 100 <= 100:
        return right
    return LineLabel(x, text, "end")


def _below(
    lost: Sequence[StateChange],
    scale: _Scale,
    ahead: Span | None,
    verb: str,
    now: datetime,
    zone_name: str,
) -> Iterator[LineLabel]:
    local = zone(zone_name)
    for step in reversed(lost):
        x = scale.x(step.at)
        anchor = "start" if x < 12 else "end" if x > 88 else "middle"
        yield LineLabel(x, "Evicted", anchor, f"{step.at.astimezone(local):%H:%M}")
    if ahead:
        for name, at, anchor in zip(("P50", "P90"), ahead, ("start", "end"), strict=True):
            yield LineLabel(scale.x(at), f"{verb} {name} {when(at, now, zone_name)}", anchor)


def _band(ends: Span, scale: _Scale) -> tuple[float, float, float]:
    low, high = scale.x(ends[0]), scale.x(ends[1])
    return low, high, round(high - low, 3)


def _ticks(scale: _Scale, zone_name: str) -> Iterator[LineLabel]:
    """The ends first, then round local times between them."""
    local = zone(zone_name)
    yield LineLabel(0, f"{scale.start.astimezone(local):%a %-d %b %H:%M}")
    yield LineLabel(100, f"{scale.end.astimezone(local):%H:%M}", "end")
    step = next((s for s in TICK_STEPS_S if scale.seconds / s <= MOST_TICKS), TICK_STEPS_S[-1])
    shift = scale.start.astimezone(local).utcoffset() or timedelta()
    first = (scale.start.timestamp() + shift.total_seconds()) // step * step + step
    at = scale.start + timedelta(seconds=first - shift.total_seconds() - scale.start.timestamp())
    while at < scale.end:
        moment = at.astimezone(local)
        midnight = moment.hour == moment.minute == 0
        yield LineLabel(
            scale.x(at), f"{moment:%a %-d %b}" if midnight else f"{moment:%H:%M}", "middle"
        )
        at += timedelta(seconds=step)


def _roomy(labels: Iterator[LineLabel]) -> list[LineLabel]:
    return roomy(labels, wide_px=WIDE_PX, narrow_px=NARROW_PX)


def _in_words(stretch: Stretch) -> str:
    return stretch.text[0].lower() + stretch.text[1:]
