"""What is shown adds up to the shown total, and nothing is off by a step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.display.adding_up import hours_column, percent_column, rounded

AMOUNTS = st.lists(st.floats(0, 1e6, allow_nan=False), max_size=30)


def figure(text: str) -> float:
    return 0.0 if text.startswith("<") else float(text.removesuffix(" %").replace(",", ""))


@given(AMOUNTS, st.integers(0, 2))
def test_parts_sum_to_the_rounded_sum_and_none_is_off_by_a_step(values, decimals):
    parts = rounded(values, decimals)
    assert sum(parts) == pytest.approx(sum(values), abs=10**-decimals / 2 + 1e-6)
    for value, part in zip(values, parts, strict=True):
        assert abs(value - part) < 10**-decimals + 1e-6


@given(AMOUNTS)
def test_shown_hours_add_up_to_the_shown_total(values):
    column = hours_column(values, sum(values))
    assert sum(map(figure, column.parts)) == pytest.approx(figure(column.total), abs=1e-6)


@pytest.mark.parametrize(("values", "total", "parts", "shown"), [
    ([100.4, 100.4, 100.4], 301.2, ["101", "100", "100"], "301"),
    ([33.33, 33.33, 33.33], 99.99, ["33.4", "33.3", "33.3"], "100"),
    ([500, 0.2, 0], 500.2, ["500", "< 1", "0"], "500"),
    ([7.5, None], 7.5, ["7.5", "–"], "7.5"),
    ([], 0, [], "0"),
])  # fmt: skip
def test_hours_by_example(values, total, parts, shown):
    column = hours_column(values, total)
    assert (column.parts, column.total) == (parts, shown)


def test_total_of_more_than_the_rows_stays_as_it_is():
    column = hours_column([100.4, 100.4], 900.0)
    assert (column.parts, column.total) == (["100", "100"], "900")


def test_shares_of_a_whole_come_to_all_of_it():
    assert percent_column([1 / 3, 1 / 3, 1 / 3]).parts == ["33.4 %", "33.3 %", "33.3 %"]
