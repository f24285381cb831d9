"""When a rule fires: over its bound for long enough, until it is well below again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from portal.alerts.models import Figure, Rule
from portal.display.periods import Floats

NEAR, QUIET = 0.8, 0.9
"""Near its bound is who is above so much of it; who fired is quiet again below so much."""
AT_LEAST = frozenset({Figure.EVICTED_AGAIN, Figure.BUDGET})
"""Counts, which fire at their bound; the others above it."""


class RuleState(StrEnum):
    FIRING = "firing"
    NEAR = "near"
    QUIET = "quiet"


@dataclass(frozen=True, slots=True)
class Episode:
    """From index ``first`` up to before ``last`` of the moments."""

    first: int
    last: int
    peak: float


def is_over(rule: Rule, value: float) -> bool:
    if np.isnan(value):
        return False
    return value >= rule.over if rule.figure in AT_LEAST else value > rule.over


def is_near(rule: Rule, value: float) -> bool:
    """Over, or close to it."""
    if np.isnan(value):
        return False
    return is_over(rule, value) or (rule.over > 0 and value >= NEAR * rule.over)


def is_quiet(rule: Rule, value: float) -> bool:
    """Whether what fires ends."""
    if np.isnan(value):
        return True
    if rule.figure in AT_LEAST or rule.over == 0:
        return not is_over(rule, value)
    return value < QUIET * rule.over


def fired(rule: Rule, times: Floats, values: Floats) -> list[Episode]:
    """All times in which ``rule`` would have fired over the series."""
    found: list[Episode] = []
    since: int | None = None
    first: int | None = None
    for i, value in enumerate(values.tolist()):
        if first is not None:
            if is_quiet(rule, value):
                found.append(_of(values, first, i))
                first = since = None
            continue
        if not is_over(rule, value):
            since = None
            continue
        since = i if since is None else since
        if times[i] - times[since] >= rule.for_s:
            first = i
    if first is not None:
        found.append(_of(values, first, len(values)))
    return found


def _of(values: Floats, first: int, last: int) -> Episode:
    return Episode(first, last, float(np.nanmax(values[first:last])))
