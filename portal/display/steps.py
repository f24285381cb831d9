"""Geometry of a step chart: samples over time to paths in a box of 100 by 100, y downwards.

The box is stretched to its place; lines keep their width because they do not scale with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.display.entitlement import Axis
from portal.display.format import gpus

Stretch = tuple[float, float, float]
"""(from x, to x, y), in the box."""


@dataclass(frozen=True)
class Sample:
    """A value that held from ``start`` for ``seconds``."""

    start: datetime
    seconds: float
    value: float


@dataclass(frozen=True)
class Frame:
    """The time and value that the box spans."""

    begin: datetime
    end: datetime
    axis: Axis

    def x(self, at: datetime) -> float:
        whole = (self.end - self.begin).total_seconds()
        return min(100.0, max(0.0, 100 * (at - self.begin).total_seconds() / whole))

    def y(self, value: float) -> float:
        return 100 - self.axis.at(value)

    def stretches(self, samples: Iterable[Sample]) -> list[Stretch]:
        return [
            (self.x(s.start), self.x(s.start + timedelta(seconds=s.seconds)), self.y(s.value))
            for s in samples
        ]

    def days(self) -> list[tuple[str, str]]:
        """(x, 'Fri 13') of each local day that begins inside; ``begin`` carries the zone."""
        midnight = self.begin.replace(hour=0, minute=0, second=0, microsecond=0)
        marks = []
        while (midnight := midnight + timedelta(days=1)) < self.end:
            marks.append((f"{self.x(midnight):.2f}%", f"{midnight:%a} {midnight.day}"))
        return marks


def line(stretches: Sequence[Stretch]) -> str:
    """One path; a gap in time lifts the pen."""
    parts: list[str] = []
    last = None
    for left, right, y in stretches:
        joined = last is not None and left - last < 0.01
        parts.append(f"V{y:.2f}" if joined else f"M{left:.2f} {y:.2f}")
        parts.append(f"H{right:.2f}")
        last = right
    return "".join(parts)


def area(stretches: Sequence[Stretch]) -> str:
    """The same down to the base line."""
    return "".join(f"M{left:.2f} 100V{y:.2f}H{right:.2f}V100Z" for left, right, y in stretches)


def apart(places: Sequence[float], gap: float) -> list[float]:
    """``places`` moved as little as needed so that neighbours are ``gap`` apart and inside 0..100.

    The order stays; equal places keep the order they came in.
    """
    order = sorted(range(len(places)), key=lambda i: (places[i], i))
    moved = list(places)
    floor = 0.0
    for i in order:
        moved[i] = floor = max(moved[i], floor)
        floor += gap
    ceiling = 100.0
    for i in reversed(order):
        moved[i] = ceiling = min(moved[i], ceiling)
        ceiling -= gap
    return moved


@dataclass(frozen=True, kw_only=True)
class StepChart:
    """What is held over time beside fair share and nominal: paths, ticks, labels at the lines."""

    axis: Axis
    days: Sequence[tuple[str, str]]
    """(place, time) of each tick."""
    area: str
    allocated: str
    fair_share: str
    nominal: str
    labels: Sequence[tuple[str, str, float]]
    """(line, text, percent from the top), kept apart."""
    until: datetime
    """Where what is drawn ends."""


def line_labels(
    frame: Frame, lines: Sequence[tuple[str, float]], gap: float
) -> list[tuple[str, str, float]]:
    """Of ``lines``, names and last values in milli-GPU, at least ``gap`` percent apart."""
    places = apart([frame.y(value) for _, value in lines], gap)
    return [(name, gpus(value), y) for (name, value), y in zip(lines, places, strict=True)]
