"""Geometry of the entitlement bar: from a queue's figures to marks on an axis.

Thick is held inside nominal, thin is on loan: filled when borrowed, hollow when lent. Fair share points
from above, nominal stands from below. All figures are milli-GPU; every place and width is a percentage
of the axis, so that the picture follows the width of its column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from portal.display.format import MILLI, gpus

COLLISION = 1.2
"""Percent of the axis below which fair share and nominal share the bar's height."""
MAX_STEPS = 6
EARLY_NOTE_UP_TO = 35
LONG_NOTE_UP_TO = 70
"""A note further right than this is shortened, or it would run into the numbers."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One queue and class now, milli-GPU.

    ``demand`` is what is held and may still be asked for, ``pending`` everything asked for beyond
    ``allocated``. ``limit`` None is unlimited; ``potential`` None is not shown.
    """

    allocated: float
    fair_share: float
    nominal: float
    limit: float | None
    demand: float
    pending: float = 0
    lent: float = 0
    kept_back: float = 0
    potential: float | None = None
    loan: float = 0
    """What loans between queues add to ``nominal``, or take from it where negative; it is in there."""

    @property
    def granted(self) -> float:
        """Nominal quota without loans."""
        return self.nominal - self.loan


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis for all bars of a page: ``end`` in milli-GPU and its ticks as (percent, label)."""

    end: float
    ticks: tuple[tuple[str, str], ...]

    @property
    def last(self) -> str:
        return self.ticks[-1][1]

    @property
    def ticks_down(self) -> list[tuple[str, str]]:
        """For an axis that stands upright: places from the top."""
        return [(_percent(100 - float(at.rstrip("%"))), label) for at, label in self.ticks]

    def at(self, milli: float) -> float:
        """Percent of the axis, held inside it."""
        return min(100.0, max(0.0, 100 * milli / self.end))

    def percent(self, milli: float) -> str:
        return _percent(self.at(milli))

    def span(self, start: float, end: float) -> Span | None:
        """The stretch between two figures; None where it has no length."""
        left, right = self.at(start), self.at(end)
        if end - start <= 0 or right <= left:
            return None
        return Span(_percent(left), _percent(right - left), _percent(right))


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the bar, in percent with the sign."""

    x: str
    width: str
    end: str


@dataclass(frozen=True, slots=True)
class Bar:
    """What the template draws, in drawing order. Absent marks are None."""

    label: str
    room: Span
    own: Span | None
    borrowed: Span | None
    pending: Span | None
    lent: Span | None
    kept_back: Span | None
    limit: str | None
    nominal: str
    potential: str | None
    fair: str
    shared: bool
    """Fair share and nominal collide: the first keeps the upper half, the other the lower."""
    over: Span | None
    note: str
    note_short: str
    note_at: str
    is_over: bool
    framed: Span | None = None
    """The part of the hatch that is one workload, or one person's."""
    framed_held: Span | None = None
    """The part of what is held that is one person's."""
    loan: Span | None = None
    """Nominal that is lent by a loan, or borrowed."""
    lends: bool = False
    is_note_early: bool = False
    """The note begins so far left that all of it has room in a narrow bar too."""


def axis(figures: Iterable[Figures], *, least: float = MILLI) -> Axis:
    """The axis that holds every bar: its end is the largest limit, rounded up to a tick."""
    end = max([least, *(_reach(one) for one in figures)])
    step = _step(end)
    count = math.ceil(end / step - 1e-9)
    end = count * step
    ticks = tuple((_percent(100 * i / count), gpus(i * step)) for i in range(count + 1))
    return Axis(end, ticks)


def bar(
    name: str, figures: Figures, on: Axis, *, framed_gpus: float = 0, framed_held: float = 0
) -> Bar:
    """Marks of one queue's bar. ``framed_gpus`` frames that much of the start of the hatch, ``framed_held``
    that much of the start of the fill."""
    one = figures
    ceiling = on.end if one.limit is None else one.limit
    held_inside = min(one.allocated, one.nominal)
    hatch_end = max(one.allocated, min(one.demand, ceiling))
    idle_from = max(one.demand, one.allocated)
    kept_to = min(one.nominal, idle_from + one.kept_back)
    over = one.allocated - ceiling if one.limit is not None else 0
    note = _note(one, over, hatch_end)
    note_at = on.at(max(one.allocated, ceiling if one.limit is not None else hatch_end))
    framed_to = min(hatch_end, one.allocated + framed_gpus)
    return Bar(
        label=_label(name, one),
        room=on.span(0, ceiling) or Span("0%", "0%", "0%"),
        own=on.span(0, held_inside),
        borrowed=on.span(held_inside, one.allocated),
        pending=on.span(one.allocated, hatch_end),
        lent=on.span(max(kept_to, one.nominal - one.lent), one.nominal),
        kept_back=on.span(idle_from, kept_to),
        limit=None if one.limit is None else on.percent(one.limit),
        nominal=on.percent(one.granted),
        potential=_potential(one, on),
        fair=on.percent(one.fair_share),
        shared=abs(on.at(one.fair_share) - on.at(one.granted)) < COLLISION,
        over=on.span(ceiling, one.allocated) if over > 0 else None,
        note=note if note_at <= LONG_NOTE_UP_TO else note.split(" ", 1)[0],
        note_short=note.split(" ", 1)[0],
        note_at=_percent(note_at),
        is_over=over > 0,
        framed=on.span(one.allocated, framed_to) if framed_gpus else None,
        framed_held=on.span(0, min(framed_held, one.allocated)) if framed_held else None,
        loan=on.span(min(one.nominal, one.granted), max(one.nominal, one.granted)),
        lends=one.loan < 0,
        is_note_early=note_at <= EARLY_NOTE_UP_TO,
    )


def _note(one: Figures, over: float, hatch_end: float) -> str:
    if one.limit is None:
        return ""
    if over > 0:
        return f"{gpus(over)} over the limit"
    past = one.allocated + one.pending - one.limit
    if past > 0 and hatch_end >= one.limit:
        return f"+{gpus(past)} pending past the limit"
    return ""


def _label(name: str, one: Figures) -> str:
    limit = "no limit" if one.limit is None else f"limit {gpus(one.limit)}"
    word = "lent" if one.loan < 0 else "borrowed"
    loan = f" with {gpus(abs(one.loan))} {word} by loans" if one.loan else ""
    return (
        f"{name}: {gpus(one.allocated)} allocated, fair share {gpus(one.fair_share)}, "
        f"nominal {gpus(one.granted)}{loan}, {limit}, {gpus(one.pending)} pending"
    )


def _potential(one: Figures, on: Axis) -> str | None:
    if one.potential is None or one.potential <= one.fair_share:
        return None
    return on.percent(one.potential)


def _reach(one: Figures) -> float:
    known = [one.allocated, one.fair_share, one.nominal, one.granted, one.potential or 0]
    return max(*known, one.demand if one.limit is None else one.limit)


def _step(end: float) -> float:
    """The smallest of 1, 2, 4, 8, 12, 16, 24, 32, 48 ... GPUs that needs at most six of itself."""
    power = 0
    while True:
        for step in (2**power, 1.5 * 2**power if power >= 3 else 0):
            if step and end <= MAX_STEPS * step * MILLI:
                return step * MILLI
        power += 1


def _percent(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") + "%"
