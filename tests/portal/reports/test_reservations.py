"""Reservations: when each began, which start it named, and what came of it."""

from __future__ import annotations

from datetime import datetime

import pytest

from portal.reports.reservations import GIVEN_UP, OPEN, STARTED, WITHDRAWN, finding, reservations
from scheduling.models import Action, Cycle, Decision, Reason, State, Workload
from tests.factories import make_workload
from tests.portal.reports.conftest import END, HOUR, Small

pytestmark = pytest.mark.django_db
LINES = {
    "reserved": (Action.RESERVE, Reason.RESERVED),
    "claims": (Action.RESERVE, Reason.AWAITS_VICTIMS),
    "starts": (Action.ADMIT, Reason.FITS_NOMINAL),
    "waits": (Action.WAIT, Reason.NO_FREE_GPUS),
}


def decided(work: Workload, hours_ago: float, line: str, until: datetime | None = None) -> None:
    action, reason = LINES[line]
    cycle = Cycle.objects.create(
        cluster=work.cluster, number=Cycle.objects.count() + 1, at=END - HOUR * hours_ago
    )
    Decision.objects.create(cycle=cycle, workload=work, action=action, reason=reason, until=until)


@pytest.mark.parametrize(
    ("lines", "came"),
    [
        (["reserved"], [OPEN]),
        (["reserved", "starts"], [STARTED]),
        (["reserved", "claims"], [OPEN]),
        (["reserved", "claims", "starts"], [STARTED]),
        (["reserved", "claims", "waits"], [GIVEN_UP]),
        (["reserved", "reserved", "starts"], [STARTED]),
        (["reserved", "waits", "starts"], [GIVEN_UP]),
        (["waits", "reserved", "waits", "reserved"], [OPEN, GIVEN_UP]),
        (["waits", "starts"], []),
    ],
)
def test_reservation_comes_to_what_its_next_line_says(
    small: Small, lines: list[str], came: list[str]
) -> None:
    work = make_workload(small.vision, state=State.PENDING)
    for i, line in enumerate(lines):
        decided(work, 10 - i, line)
    report = reservations(small.cluster, small.last(), small.operator)
    assert [one.came for one in report.all] == came


@pytest.mark.parametrize(("hours_ago", "came"), [(2, WITHDRAWN), (-1, OPEN)])
def test_reservation_of_work_that_ends_without_a_line_was_withdrawn_once_it_has_ended(
    small: Small, hours_ago: float, came: str
) -> None:
    work = make_workload(small.vision, state=State.FINISHED, finished_at=END - HOUR * hours_ago)
    decided(work, 6, "reserved")
    (one,) = reservations(small.cluster, small.last(), small.operator).all
    assert one.came == came


def test_start_is_compared_with_the_time_that_was_named_first(small: Small) -> None:
    work = make_workload(small.vision)
    decided(work, 6, "reserved", until=END - 4 * HOUR)
    decided(work, 5, "reserved", until=END - 2 * HOUR)
    decided(work, 3, "starts")
    (one,) = reservations(small.cluster, small.last(), small.operator).all
    assert one.later_s == 3600


def test_work_that_one_may_not_see_is_neither_counted_nor_named(small: Small) -> None:
    for queue in (small.vision, small.platform):
        decided(make_workload(queue, state=State.PENDING), 3, "reserved")
    report = reservations(small.cluster, small.last(), small.lead)
    assert [row[0] for row in report.tables()[0].rows] == ["research/vision"]
    assert len(report.tables()[1].rows) == 1


def test_finding_counts_what_was_given_up_of_those_that_are_over(small: Small) -> None:
    for last in ("starts", "waits"):
        work = make_workload(small.vision)
        decided(work, 6, "reserved", until=END - HOUR)
        decided(work, 3, last)
    decided(make_workload(small.vision, state=State.PENDING), 2, "reserved")
    assert str(finding(reservations(small.cluster, small.last(), small.operator))) == (
        "3 reservations, of which 50 % were given up. "
        "1 of 1 start came no later than the time that was named."
    )
