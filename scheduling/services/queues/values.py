"""What a quota says, how it runs through time, and how an edit is cut into it. Pure.

GPUs are milli-GPU integers here; ``None`` is unlimited (limits only). Instants are aware UTC, ranges
half open: [start, end), ``None`` without end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any


class Field(StrEnum):
    """What a cell of the grid holds."""

    NOMINAL = "nominal"
    BORROWING_LIMIT = "borrowing_limit"
    LENDING_LIMIT = "lending_limit"
    WEIGHT = "weight"
    BUDGET = "budget_gpu_hours"

    @property
    def may_be_unlimited(self) -> bool:
        return self in (Field.BORROWING_LIMIT, Field.LENDING_LIMIT, Field.BUDGET)

    @property
    def is_gpus(self) -> bool:
        return self not in (Field.WEIGHT, Field.BUDGET)


@dataclass(frozen=True, slots=True)
class Values:
    """A queue's quota of one class; the defaults are what the engine takes where no row is."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    weight: Decimal = Decimal(1)
    budget_gpu_hours: int | None = None

    def get(self, field: Field) -> int | Decimal | None:
        value: int | Decimal | None = getattr(self, field.value)
        return value


@dataclass(frozen=True, slots=True)
class Segment:
    """Values in force during [start, end)."""

    start: datetime
    end: datetime | None
    values: Values

    def overlaps(self, start: datetime, end: datetime | None) -> bool:
        return _before(start, self.end) and _before(self.start, end)

    def outside(self, start: datetime, end: datetime | None) -> Iterator[Segment]:
        """What is left of it once [start, end) is cut out: none, one or two parts."""
        if not self.overlaps(start, end):
            yield self
            return
        if self.start < start:
            yield replace(self, end=start)
        if end is not None and _before(end, self.end):
            yield replace(self, start=end)

    def inside(self, start: datetime, end: datetime | None) -> Segment:
        return replace(self, start=max(self.start, start), end=_earlier(self.end, end))


def value_at(timeline: Sequence[Segment], at: datetime) -> Values:
    """The values in force at ``at``; the defaults in a gap."""
    return next((s.values for s in timeline if s.start <= at and _before(at, s.end)), Values())


def patched(
    timeline: Sequence[Segment],
    *,
    start: datetime,
    end: datetime | None,
    edit: Mapping[Field, int | Decimal | None],
) -> list[Segment]:
    """``timeline`` with the fields of ``edit`` replaced during [start, end), in order of time.

    The other fields keep what each stretch says, gaps inside the range are filled with defaults, and
    from ``end`` on the old values hold again.
    """
    rest = [part for s in timeline for part in s.outside(start, end)]
    cut = [s.inside(start, end) for s in timeline if s.overlaps(start, end)]
    changes: dict[str, Any] = {field.value: value for field, value in edit.items()}
    changed = [
        replace(s, values=replace(s.values, **changes)) for s in _without_gaps(cut, start, end)
    ]
    return sorted([*rest, *changed], key=lambda s: s.start)


def instants(
    timelines: Sequence[Sequence[Segment]], start: datetime, end: datetime | None
) -> list[datetime]:
    """Every moment of [start, end) from which some timeline may say something new, in order."""
    moments = {start}
    for timeline in timelines:
        for segment in timeline:
            moments |= {segment.start, segment.end or segment.start}
    return sorted(m for m in moments if start <= m and _before(m, end))


def _without_gaps(
    segments: Sequence[Segment], start: datetime, end: datetime | None
) -> Iterator[Segment]:
    reached: datetime | None = start
    for segment in sorted(segments, key=lambda s: s.start):
        if reached is not None and reached < segment.start:
            yield Segment(reached, segment.start, Values())
        yield segment
        reached = segment.end
    if reached is not None and _before(reached, end):
        yield Segment(reached, end, Values())


def _before(moment: datetime, end: datetime | None) -> bool:
    return end is None or moment < end


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    if one is None or other is None:
        return one or other
    return min(one, other)
