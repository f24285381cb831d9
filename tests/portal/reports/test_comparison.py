"""A range is held against the one before only where that is known as fully; else the page says since when."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from portal.reports import samples
from portal.reports.kinds import REPORTS
from portal.reports.scope import report_scope
from portal.selectors import queue as queue_figures
from scheduling.models import State
from tests.factories import make_workload
from tests.portal.reports.conftest import END, HOUR, Small
from tests.portal.reports.test_waits import started

pytestmark = pytest.mark.django_db
SAID = "Not compared with the"


@pytest.mark.parametrize(("hours", "known"), [(27.5, False), (46.5, False), (47, True), (49, True)])
def test_day_before_is_compared_with_only_where_it_is_known_to_its_begin(
    small: Small, hours: float, known: bool
) -> None:
    """Of a day, a tenth of it unknown was once enough."""
    small.sample(small.root, small.h100, hours_ago=hours, installed=16, ready=16)
    make_workload(small.vision, submitted_at=END - hours * HOUR)
    filters = small.last(24, compare=True)
    scope = report_scope(small.cluster, filters, small.operator)
    assert samples.is_known(scope, filters.before()) is known


@pytest.mark.parametrize("name", [name for name, one in REPORTS.items() if one.compares])
def test_report_says_since_when_it_knows_where_it_compares_with_nothing(
    small: Small, name: str
) -> None:
    small.sample(small.root, small.h100, hours_ago=30, installed=16, ready=16)
    started(small.vision, small.h100, wait_s=60, at=END - 20 * HOUR)
    client = Client()
    client.force_login(small.operator)
    address = reverse(f"reports:{name}", args=["fra1"])

    def page(hours: int, **more: str) -> str:
        span = {"from": f"{END - hours * HOUR:%Y-%m-%dT%H:%MZ}", "to": f"{END:%Y-%m-%dT%H:%MZ}"}
        return client.get(address, span | more).content.decode()

    assert f"{SAID} 18 hours before: work and its GPUs are known since" in page(18)
    assert SAID not in page(5)
    assert SAID not in page(18, compare="none")


@pytest.mark.parametrize("name", REPORTS)
def test_report_offers_to_compare_only_where_it_does(small: Small, name: str) -> None:
    client = Client()
    client.force_login(small.operator)
    page = client.get(reverse(f"reports:{name}", args=["fra1"])).content.decode()
    assert ('name="compare"' in page) == REPORTS[name].compares
    assert REPORTS[name].compares or SAID not in page


@pytest.mark.parametrize(("days", "count"), [(13, None), (14, 1)])
def test_week_before_of_a_queue_is_told_only_where_work_reaches_back_to_its_begin(
    small: Small, days: int, count: int | None
) -> None:
    make_workload(small.platform, submitted_at=END - timedelta(days=days), state=State.FINISHED)
    started(small.vision, small.h100, wait_s=60, at=END - timedelta(days=8))
    before = queue_figures.waits(small.vision, small.h100, END).before
    assert (before.count if before else None) == count
