"""What the correction of a live cluster learns from."""

from datetime import timedelta

import pytest

from scheduling.models import ForecastOutcome
from scheduling.services.starts import outcomes
from scheduling.simulation.ahead.bands import Band
from scheduling.simulation.ahead.correction import Correction
from tests.factories import NOW, make_cluster, make_workload

pytestmark = pytest.mark.django_db
TOLD = Band(3600, 5400)


def told(work, number, *, came_s=7200, days_ago=2, started=True):
    at = NOW - timedelta(days=days_ago, seconds=10 * number)
    return ForecastOutcome(
        workload=work,
        at_submission=False,
        told_at=at,
        p50_s=TOLD.p50_s,
        p90_s=TOLD.p90_s,
        raw_p50_s=TOLD.p50_s,
        raw_p90_s=TOLD.p90_s,
        started_at=at + timedelta(seconds=came_s) if started else None,
    )


@pytest.fixture
def work():
    return make_workload(None, cluster=make_cluster())


def correction_after(work, *rows):
    ForecastOutcome.objects.bulk_create(rows)
    return outcomes.correction_of(work.cluster, NOW)


def test_twice_as_late_as_told_is_told_twice_as_far(work):
    found = correction_after(work, *(told(work, i) for i in range(100)))
    assert found.correct(TOLD).p50_s == pytest.approx(7200, rel=0.02)


def test_forecasts_of_months_ago_correct_nothing(work):
    old = outcomes.REMEMBERED.days + 1
    found = correction_after(work, *(told(work, i, days_ago=old) for i in range(100)))
    assert found == Correction()


def test_start_after_now_is_not_known_yet(work):
    late = 3 * 86400
    found = correction_after(work, *(told(work, i, came_s=late) for i in range(100)))
    assert found == Correction()


def test_what_waits_still_moves_bands_out(work):
    started = [told(work, i, came_s=3600) for i in range(100)]
    waiting = [told(work, 100 + i, started=False) for i in range(100)]
    alone = correction_after(work, *started).correct(TOLD)
    with_waiting = correction_after(work, *waiting).correct(TOLD)
    assert with_waiting.p90_s > alone.p90_s


def test_more_than_is_learned_from_is_taken_evenly_over_time(work, monkeypatch):
    monkeypatch.setattr(outcomes, "LEARNED", 200)
    early = [told(work, 1000 - i, came_s=3600) for i in range(400)]
    late = [told(work, 500 - i, came_s=3600 * 1.5) for i in range(500)]
    found = correction_after(work, *early, *late)
    assert found.correct(TOLD).p50_s == pytest.approx(3600 * 1.5, rel=0.02)


def test_other_clusters_forecasts_are_none_of_its_own(work):
    correction_after(work, *(told(work, i) for i in range(100)))
    assert outcomes.correction_of(make_cluster("ams2"), NOW) == Correction()
