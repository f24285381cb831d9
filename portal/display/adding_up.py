"""Columns whose shown parts sum to their shown total: each is rounded so that the sum comes out right.

By largest remainder: all are rounded down, then those that lost most get one step more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from portal.display.format import NONE, number

FINE_BELOW = 100
"""GPU-hours with a decimal, as ``format.hours`` has it; the total decides for the column."""

SAME = 1e-9
"""Rows that sum to the total but for the noise of floating point."""


@dataclass(frozen=True, slots=True)
class Column:
    """What stands in each row, in their order, and in the last one."""

    parts: Sequence[str]
    total: str


def rounded(values: Sequence[float], decimals: int = 0) -> list[float]:
    """``values`` to ``decimals`` places, none off by a step or more, with the sum of all as it rounds."""
    step: int = 10**decimals
    scaled = [value * step for value in values]
    parts = [math.floor(value) for value in scaled]
    missing = round(sum(scaled)) - sum(parts)
    most_lost = sorted(range(len(parts)), key=lambda i: (parts[i] - scaled[i], i))
    for i in most_lost[:missing]:
        parts[i] += 1
    return [part / step for part in parts]


def shared_out(values: Sequence[float], total: int) -> list[int]:
    """``values`` as whole numbers that sum to ``total``, which is near their sum: by largest remainder."""
    parts = [math.floor(value) for value in values]
    order = sorted(range(len(parts)), key=lambda i: (parts[i] - values[i], i))
    missing = total - sum(parts)
    step = 1 if missing > 0 else -1
    for n in range(abs(missing) if parts else 0):
        parts[order[n % len(order)]] += step
    return parts


def hours_column(values: Sequence[float | None], total: float) -> Column:
    """GPU-hours; None, which nobody measured, is a dash and adds nothing."""
    return _column(values, total, 1 if abs(total) < FINE_BELOW else 0, "")


def percent_column(shares: Sequence[float | None]) -> Column:
    """Shares of a whole, to a tenth of a percent."""
    percents = [None if share is None else 100 * share for share in shares]
    return _column(percents, 100.0, 1, " %")


def _column(values: Sequence[float | None], total: float, decimals: int, unit: str) -> Column:
    """Rows that are not all of the total are each rounded for themselves."""
    known = [value or 0.0 for value in values]
    is_all = abs(sum(known) - total) < SAME * max(1.0, abs(total))
    parts = rounded(known, decimals) if is_all else [round(value, decimals) for value in known]
    texts = [_text(value, part, decimals, unit) for value, part in zip(values, parts, strict=True)]
    return Column(texts, number(total, decimals) + unit)


def _text(value: float | None, part: float, decimals: int, unit: str) -> str:
    """What is not nothing never reads as nothing."""
    if value is None:
        return NONE
    if value > 0 and not part:
        return f"< {number(10**-decimals, decimals)}{unit}"
    return number(part, decimals) + unit
