"""When a rule fires, over any series: a table, and what holds of all of them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.alerts.firing import fired, is_near, is_over, is_quiet
from portal.alerts.models import Figure, Rule

NAN = math.nan


def rule(over: float = 10, for_s: int = 0, figure: Figure = Figure.LONGEST_WAIT) -> Rule:
    return Rule(figure=figure, over=over, for_s=for_s)


def spells(one: Rule, *values: float, step: float = 60) -> list[tuple[int, int, float]]:
    times = np.arange(len(values)) * step
    return [(f.first, f.last, f.peak) for f in fired(one, times, np.array(values, float))]


@pytest.mark.parametrize(
    ("one", "values", "expected"),
    [
        (rule(), (1, 11, 12, 8, 1), [(1, 3, 12)]),
        (rule(), (1, 10, 10, 1), []),
        (rule(figure=Figure.EVICTED_AGAIN, over=3), (1, 3, 2), [(1, 2, 3)]),
        (rule(), (1, 11, 9.5, 9.5, 8), [(1, 4, 11)]),
        (rule(for_s=120), (11, 11, 1, 11, 11, 11, 11), [(5, 7, 11)]),
        (rule(), (11, 11), [(0, 2, 11)]),
        (rule(), (11, NAN, 11), [(0, 1, 11), (2, 3, 11)]),
        (rule(over=0, figure=Figure.OVERSUBSCRIBED), (0, 1, 0), [(1, 2, 1)]),
        (rule(), (), []),
    ],
)
def test_rule_fires_while_its_figure_is_over_for_long_enough(
    one: Rule, values: tuple[float, ...], expected: list[tuple[int, int, float]]
) -> None:
    assert spells(one, *values) == expected


@pytest.mark.parametrize(("value", "close"), [(7.9, False), (8, True), (11, True), (NAN, False)])
def test_rule_is_near_from_four_fifths_of_its_bound(value: float, close: bool) -> None:
    assert is_near(rule(), value) == close


@given(st.lists(st.one_of(st.floats(0, 20), st.just(NAN)), max_size=40), st.integers(0, 300))
def test_spells_are_apart_and_begin_over_the_bound(values: list[float], for_s: int) -> None:
    one, times = rule(for_s=for_s), np.arange(len(values)) * 60.0
    found = fired(one, times, np.array(values))

    assert all(a.last <= b.first for a, b in pairwise(found))
    assert all(is_over(one, values[f.first]) for f in found)
    assert all(f.last == len(values) or is_quiet(one, values[f.last]) for f in found)
    assert all(f.peak >= one.over for f in found)


@given(st.lists(st.floats(0, 20), max_size=40), st.floats(1, 19), st.floats(0, 10))
def test_higher_bound_never_fires_for_longer(values: list[float], low: float, more: float) -> None:
    times, series = np.arange(len(values)) * 60.0, np.array(values)

    def first(over: float) -> int:
        found = fired(rule(over), times, series)
        return found[0].first if found else len(values)

    assert first(low) <= first(low + more)
