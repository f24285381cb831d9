"""When a bound of fairness is passed: above it by more than noise, or by more than a tenth."""

from __future__ import annotations

import pytest

from scheduling.services.learned.figures import BOUNDS, MOST_OF_ONE, passed

ALLOWED = {name: bound * 0.5 for name, bound in BOUNDS.items()}


def lives(name: str, values: list[float]) -> list[dict[str, float]]:
    return [ALLOWED | {name: value} for value in values]


@pytest.mark.parametrize(
    ("name", "now", "mine", "is_passed"),
    [
        ("unfair_pct", [0.2] * 5, [0.7] * 5, False),
        ("unfair_pct", [0.2] * 5, [0.9] * 5, True),
        ("unfair_pct", [2.0, 2.4, 2.2, 2.1, 2.3], [2.3, 2.1, 2.4, 2.2, 2.2], False),
        ("unfair_pct", [2.0, 2.4, 2.2, 2.1, 2.3], [2.1, 2.5, 2.3, 2.2, 2.4], True),
        ("unfair_pct", [2.0, 2.4, 2.2, 2.1, 2.3], [3.5, 1.6, 3.2, 1.9, 2.6], True),
        (MOST_OF_ONE, [5.0, 9.0, 6.0, 7.0, 6.0], [6.0, 8.0, 12.0, 5.0, 6.0], False),
        (MOST_OF_ONE, [5.0, 9.0, 6.0, 7.0, 6.0], [8.0, 12.0, 9.0, 10.0, 9.0], True),
        ("others_wait_s", [100.0] * 5, [99.0] * 5, False),
        ("others_wait_s", [100.0] * 5, [101.0] * 5, True),
    ],
)
def test_bound_is_passed_by_more_than_noise_or_more_than_a_tenth(
    name: str, now: list[float], mine: list[float], is_passed: bool
) -> None:
    assert passed(lives(name, mine), lives(name, now), 1) == ([name] if is_passed else [])
