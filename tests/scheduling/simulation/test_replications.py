"""Means with intervals: worked examples, what widening promises, and when nothing may be said."""

from __future__ import annotations

import numpy as np
import pytest

from scheduling.simulation.replications import Verdict, compare, interval

FIVE = [10.0, 11.0, 9.0, 10.5, 9.5]


def test_interval_of_five_is_that_of_the_table_of_student() -> None:
    found = interval(FIVE)

    # Standard deviation sqrt(2.5 / 4), four degrees of freedom: 2.776 in every table.
    assert found.mean == 10.0
    assert found.half == pytest.approx(2.776 * (2.5 / 4) ** 0.5 / 5**0.5, rel=1e-3)
    assert (found.low, found.high) == (10.0 - found.half, 10.0 + found.half)


def test_interval_of_one_value_has_no_width() -> None:
    assert (interval([7.0]).mean, interval([7.0]).half) == (7.0, None)
    assert interval([7.0]).low is None


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_values_that_are_none_or_not_finite_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        interval(values)


@pytest.mark.parametrize(
    ("other", "lower", "verdict"),
    [
        ([8.0, 9.1, 7.0, 8.4, 7.5], True, Verdict.BETTER),
        ([8.0, 9.1, 7.0, 8.4, 7.5], False, Verdict.WORSE),
        ([12.0, 13.1, 11.0, 12.4, 11.5], True, Verdict.WORSE),
        ([9.0, 12.0, 8.5, 11.0, 9.4], True, Verdict.NOISE),
        (FIVE, True, Verdict.NOISE),
    ],
)
def test_verdict_follows_the_sign_where_the_interval_leaves_out_zero(
    other: list[float], lower: bool, verdict: Verdict
) -> None:
    assert compare(FIVE, other, lower_is_better=lower).verdict is verdict


def test_fewer_than_five_pairs_are_not_judged_however_clear() -> None:
    found = compare([10.0, 10.0, 10.1, 10.0], [1.0, 1.0, 1.1, 1.2])

    assert found.verdict is Verdict.TOO_FEW
    assert found.half is not None


def test_differences_that_hold_alone_may_be_noise_among_ten() -> None:
    base, other = [0.0] * 5, [1.0, 2.0, 0.4, 1.6, 0.5]

    alone, among = compare(base, other), compare(base, other, 10)

    assert (alone.verdict, among.verdict) == (Verdict.WORSE, Verdict.NOISE)
    # A tail of 0.05 / 10 / 2 with four degrees of freedom: 5.598 in every table, against 2.776.
    assert among.half / alone.half == pytest.approx(5.598 / 2.776, rel=1e-3)


def test_pairs_of_unequal_number_are_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match="pair each life"):
        compare(FIVE, FIVE[:4])


def test_less_than_one_comparison_is_refused() -> None:
    with pytest.raises(ValueError, match="comparisons"):
        compare(FIVE, FIVE, 0)


def test_pairing_finds_what_the_spread_of_lives_hides() -> None:
    base = [100.0, 200.0, 300.0, 400.0, 500.0]
    other = [value - 5 - 0.1 * place for place, value in enumerate(base)]

    assert compare(base, other).verdict is Verdict.BETTER


def test_twenty_comparisons_of_nothing_rarely_find_anything() -> None:
    dice = np.random.default_rng(7)
    questions = 400

    def any_found(comparisons: int) -> int:
        base = np.zeros(6)
        found = [compare(base, dice.normal(0, 1, 6), comparisons) for _ in range(20)]
        return any(each.verdict is not Verdict.NOISE for each in found)

    wrong = sum(any_found(20) for _ in range(questions))

    assert wrong < 0.08 * questions  # 5 % are allowed, and 3 standard deviations of chance
