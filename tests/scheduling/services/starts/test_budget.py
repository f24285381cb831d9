"""What a pass of forecasts may take, and when the next one may begin."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.config.schedule import DUTIES
from scheduling.models import ForecastRun
from scheduling.services.starts.futures import LEAST_FUTURES, MOST_FUTURES, MOST_LIVED, may_go_on
from scheduling.services.starts.refresh import TASK, is_due

NOW = datetime(2026, 11, 19, 9, 42, tzinfo=UTC)


def futures_of(each):
    lived = []
    while may_go_on(lived, MOST_FUTURES):
        lived.append(each)
    return len(lived)


def test_little_work_is_lived_in_as_many_futures_as_there_may_be():
    assert futures_of(50) == MOST_FUTURES


def test_work_of_a_pass_stays_below_its_bound():
    count = futures_of(1000)
    assert LEAST_FUTURES < count < MOST_FUTURES
    assert count * 1000 <= MOST_LIVED


def test_ten_thousand_pending_are_lived_in_the_fewest_futures():
    assert futures_of(10_000) == LEAST_FUTURES


@pytest.mark.parametrize("cpu_s", [8.0, 40.0, 400.0])
def test_pass_is_followed_by_rest_until_its_share_of_a_core_is_not_passed(cpu_s):
    run = ForecastRun(began_at=NOW, cpu_s=cpu_s)
    rest_s = cpu_s / DUTIES[TASK].share
    assert not is_due(run, NOW + timedelta(seconds=rest_s - 1))
    assert is_due(run, NOW + timedelta(seconds=rest_s))


def test_cheap_pass_is_not_made_all_the_time():
    assert not is_due(ForecastRun(began_at=NOW, cpu_s=0.01), NOW + timedelta(seconds=5))
