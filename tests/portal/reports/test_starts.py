"""Starts by hour of day: in the reader's zone, first starts alone, with the median of their waits."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from portal.display.spread import LEAST
from portal.reports.starts import StartsReport, finding, span, starts
from scheduling.models import State
from tests.factories import make_workload
from tests.portal.reports.conftest import END, HOUR, Small
from tests.portal.reports.test_waits import started

pytestmark = pytest.mark.django_db


def counts(report: StartsReport) -> dict[int, int]:
    return {hour: spread.count for hour, spread in enumerate(report.hours) if spread.count}


def test_starts_are_counted_in_each_hour_of_all_days_with_their_median_wait(small: Small) -> None:
    at = END - 2 * HOUR
    for wait_s, days in ((60, 0), (120, 1), (600, 2)):
        started(small.vision, small.h100, wait_s=wait_s, at=at - timedelta(days=days))
    started(small.speech, small.mig, wait_s=30, at=at + HOUR)
    report = starts(small.cluster, small.last(72), small.operator)
    assert counts(report) == {at.hour: 3, at.hour + 1: 1}
    table, busiest = report.tables()
    assert len(table.rows) == 24
    assert list(table.rows[at.hour]) == [at.hour, 3, 0.75, 120.0]
    assert list(table.rows[(at.hour + 2) % 24])[1:] == [0, 0.0, None]
    assert [row[:2] for row in busiest.rows] == [(span(at.hour), 3), (span(at.hour + 1), 1)]


def test_hour_is_that_of_the_readers_zone_in_summer_and_in_winter(small: Small) -> None:
    for day in ("2026-10-24", "2026-10-26"):  # Berlin's clock goes back on the 25th.
        at = datetime.fromisoformat(f"{day}T21:30:00+00:00")
        started(small.vision, small.h100, wait_s=60, at=at)
    wide = {"hours": 24 * 60}
    found = starts(small.cluster, small.last(**wide, zone="Europe/Berlin"), small.operator)
    assert counts(found) == {22: 1, 23: 1}
    assert counts(starts(small.cluster, small.last(**wide), small.operator)) == {21: 2}
    assert found.as_dict()["time_zone"] == "Europe/Berlin"


def test_what_started_outside_the_range_or_the_subtree_or_not_yet_is_left_out(small: Small) -> None:
    started(small.vision, small.h100, wait_s=60)
    started(small.vision, small.h100, wait_s=60, at=END - 30 * HOUR)
    started(small.platform, small.h100, wait_s=60)
    make_workload(small.vision, state=State.PENDING, submitted_at=END - HOUR)
    assert starts(small.cluster, small.last(), small.lead).count == 1


def test_finding_names_the_busiest_hour_and_the_one_with_the_longest_median(small: Small) -> None:
    noon = END.replace(hour=12) - timedelta(days=1)
    for _ in range(2 * LEAST):
        started(small.vision, small.h100, wait_s=60, at=noon)
    for _ in range(LEAST):
        started(small.vision, small.h100, wait_s=7200, at=noon + HOUR)
    started(small.vision, small.h100, wait_s=99999, at=noon + 2 * HOUR)
    assert str(finding(starts(small.cluster, small.last(48), small.operator))) == (
        "16 workloads started, 62.5 % of them between 12:00 and 13:00. Work that started between 13:00 "
        "and 14:00 had waited longest: half of it 2 h or more."
    )


def test_single_start_is_compared_with_none(small: Small) -> None:
    started(small.vision, small.h100, wait_s=60)
    told = str(finding(starts(small.cluster, small.last(), small.operator)))
    assert told.startswith("1 workload started, 100 % of them between")
    assert "longest" not in told


@pytest.mark.parametrize("count", [1, 3])
def test_queries_do_not_grow_with_the_work(
    small: Small, count: int, django_assert_num_queries: object
) -> None:
    for _ in range(count):
        started(small.vision, small.h100, wait_s=60)
    with django_assert_num_queries(4):  # type: ignore[operator]
        starts(small.cluster, small.last(), small.operator)
