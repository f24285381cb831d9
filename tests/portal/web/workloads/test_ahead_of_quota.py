"""How a workload stands against the quota of its queue alone, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from portal.web.workloads.ahead_of_quota import standing_of
from scheduling.models import State, Workload

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


def work(state: str, virtual_h: float | None, started_h: float | None, **more: Any) -> Workload:
    def at(hours: float | None) -> datetime | None:
        return None if hours is None else NOW + timedelta(hours=hours)

    return Workload(
        state=state, submitted_at=at(-9), virtual_start_at=at(virtual_h), started_at=at(started_h), **more
    )  # fmt: skip


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (work(State.RUNNING, -1, -3.1667), "2 h 10 min ahead of its own quota"),
        (work(State.RUNNING, -3, -1), "2 h behind its own quota"),
        (work(State.PENDING, -0.5, None, reason="no_free_gpus"), "30 min behind its own quota"),
        (work(State.RUNNING, -1, -1), "As on its own quota"),
        (work(State.RUNNING, None, -1), "Ahead of its own quota"),
        (work(State.PENDING, None, None), "Not behind"),
    ],
)
def test_standing_says_how_far_ahead_or_behind(row: Workload, text: str) -> None:
    standing = standing_of(row, NOW)

    assert standing is not None
    assert standing.text == text
    assert standing.is_behind == ("behind its" in text)


def test_who_waits_behind_is_told_why() -> None:
    standing = standing_of(work(State.PENDING, -1, None, reason="no_free_gpus"), NOW)

    assert standing is not None
    assert standing.why.endswith("It waits: not enough free.")


def test_what_ended_before_anybody_played_along_has_no_standing() -> None:
    assert standing_of(work(State.FINISHED, None, -1, finished_at=NOW), NOW) is None


@pytest.mark.parametrize(
    ("pace", "said"),
    [
        (4.0, "it would run on l4, where such runs end 4.0 times as late."),
        (0.5, "it would run on l4, where such runs end 2.0 times as soon."),
    ],
)
def test_run_on_another_class_than_alone_is_told_how_the_classes_compare(
    pace: float, said: str
) -> None:
    row = work(State.RUNNING, -1, -1, class_on_own_quota="l4", own_pace=pace)

    standing = standing_of(row, NOW)

    assert standing is not None
    assert said in standing.why
    assert standing.is_behind == (pace < 1)
