"""A share of the worlds that ``second_plans`` lives through: the same ones in every run."""

from __future__ import annotations

import pytest

from tests.scheduling.engine.second_plans import (
    KINDS,
    LENT,
    OWED,
    OWN,
    ROUNDED,
    cause,
    main,
    of_seed,
)

pytestmark = pytest.mark.long


@pytest.mark.parametrize("kind", KINDS)
def test_plans_after_a_plan_do_nothing_till_all_who_leave_are_gone(kind: str) -> None:
    """Laws 4 and 8."""
    assert [f"{kind}:{seed}" for seed in range(50) if of_seed(kind, seed)] == []


@pytest.mark.parametrize(
    ("kind", "seed", "why"),
    [
        ("contended", 82, ROUNDED),
        ("bounded", 92, LENT),
        ("bounded", 12522, OWN),
        ("scattered", 159, OWED),
    ],
)
def test_cause_of_what_a_later_plan_takes_is_told_apart(kind: str, seed: int, why: str) -> None:
    finding = of_seed(kind, seed)
    assert finding is not None
    assert cause(finding) == why


@pytest.mark.parametrize(("most", "ends_with"), [("999", 1), ("1000", 0)])
def test_report_ends_with_one_where_there_are_more_faults_than_allowed(
    most: str, ends_with: int, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--worlds", "1", "--seed", "12522", "--kinds", "bounded", "--most", most]
    assert main(asked) == ends_with
    assert f"{OWN}, at the end: bounded:12522" in capsys.readouterr().out
