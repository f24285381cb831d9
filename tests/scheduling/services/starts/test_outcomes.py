"""What the correction of a live cluster learns from."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.models import MILLI, ForecastOutcome, LateCause, State, Workload
from scheduling.services.starts import accuracy, outcomes
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


# What settling costs, in queries and in rows.


def late_one(cluster, gpu_class, name, *, began, told_days_ago=1.0):
    """Told at submission to start within the hour; started ``began`` ago, a day late."""
    told_at = NOW - timedelta(days=told_days_ago)
    work = make_workload(
        None, cluster=cluster, name=name, gpu_class=gpu_class, submitted_at=told_at,
        first_started_at=NOW - began, started_at=NOW - began, state=State.RUNNING,
    )  # fmt: skip
    row = told(work, 0, started=False)
    row.at_submission, row.told_at, row.gpu_class = True, told_at, gpu_class
    row.save()
    return row


def waiting_one(cluster, gpu_class, name):
    work = make_workload(
        None, cluster=cluster, name=name, submitted_at=NOW - timedelta(days=1), state=State.PENDING
    )
    row = told(work, 0, started=False)
    row.at_submission, row.gpu_class = True, gpu_class
    return row


@pytest.fixture
def site():
    cluster = make_cluster()
    return cluster, cluster.gpu_classes.create(name="h100", resource_name="nvidia.com/gpu")


def settled(cluster, since=None):
    with CaptureQueriesContext(connection) as queries:
        count = outcomes.settle(cluster, since)
    return count, len(queries)


def test_many_late_starts_take_as_many_queries_as_few(site):
    cluster, gpu_class = site
    for number in range(2):
        late_one(cluster, gpu_class, f"few-{number}", began=timedelta(minutes=3))
    few = settled(cluster)
    for number in range(60):
        late_one(cluster, gpu_class, f"many-{number}", began=timedelta(minutes=2))
    many = settled(cluster)
    assert (few[0], many[0]) == (2, 60)
    assert many[1] == few[1]


def test_what_waits_still_is_not_read_by_a_pass_over_what_began(site, monkeypatch):
    cluster, gpu_class = site
    ForecastOutcome.objects.bulk_create(
        waiting_one(cluster, gpu_class, f"waits-{number}") for number in range(200)
    )
    late_one(cluster, gpu_class, "old", began=timedelta(hours=5))
    late_one(cluster, gpu_class, "new", began=timedelta(minutes=2))
    read = []
    monkeypatch.setattr(
        ForecastOutcome,
        "from_db",
        classmethod(lambda cls, *a: read.append(a) or super(cls, cls).from_db(*a)),
    )
    count, _ = settled(cluster, since=NOW - timedelta(minutes=10))
    assert count == 1
    assert len(read) == 1


def test_who_was_never_started_is_forgotten_once_it_ended(site):
    cluster, gpu_class = site
    row = waiting_one(cluster, gpu_class, "cancelled")
    row.save()
    Workload.objects.update(state=State.FINISHED, finished_at=NOW)
    outcomes.settle(cluster, since=NOW - timedelta(minutes=10))
    assert not ForecastOutcome.objects.exists()


def test_later_arrivals_that_took_more_than_what_overran_are_the_cause(site):
    cluster, gpu_class = site
    row = late_one(cluster, gpu_class, "late", began=timedelta(hours=1))
    since = NOW - timedelta(hours=11)
    make_workload(
        None, cluster=cluster, name="came", gpu_class=gpu_class, gpus=8 * MILLI, max_members=1, members=1,
        submitted_at=since, first_started_at=since, started_at=since, state=State.RUNNING,
    )  # fmt: skip
    outcomes.settle(cluster)
    row.refresh_from_db()
    assert (row.cause, row.note) == (
        LateCause.MORE_ARRIVED, "Later arrivals took 80 GPU-hours before it started."
    )  # fmt: skip


def test_runs_that_lasted_beyond_what_was_told_are_the_cause(site):
    cluster, gpu_class = site
    row = late_one(cluster, gpu_class, "late", began=timedelta(hours=1))
    since = NOW - timedelta(days=2)
    make_workload(
        None, cluster=cluster, name="ran", gpu_class=gpu_class, gpus=2 * MILLI, max_members=1, members=1,
        submitted_at=since, first_started_at=since, started_at=since, state=State.RUNNING,
    )  # fmt: skip
    outcomes.settle(cluster)
    row.refresh_from_db()
    # Until 1 hour ago, from 1.5 hours after it was told a day ago.
    assert (row.cause, row.note) == (
        LateCause.RUNS_LONGER, "Work that ran then held 43 GPU-hours past its P90 start."
    )  # fmt: skip


def test_second_pass_within_the_hour_writes_down_no_forecast_again(site):
    cluster, gpu_class = site
    work = make_workload(None, cluster=cluster, name="waits", state=State.PENDING)
    for minutes in (0, 59):
        outcomes.note(cluster, [(work, TOLD, TOLD, gpu_class)], NOW + timedelta(minutes=minutes))
    assert ForecastOutcome.objects.count() == 1
    outcomes.note(cluster, [(work, TOLD, TOLD, gpu_class)], NOW + timedelta(minutes=61))
    assert [row.at_submission for row in ForecastOutcome.objects.order_by("told_at")] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("p50_s", "p90_s", "is_told"),
    [
        (60, 12 * 3600, True),
        (60, 12 * 3600 + 1, False),
        (7200, 24 * 3600, True),
        (8 * 86400, 9 * 86400, False),
    ],
)
def test_band_that_was_too_wide_or_too_far_to_be_told_is_in_no_record(site, p50_s, p90_s, is_told):
    cluster, gpu_class = site
    work = make_workload(None, cluster=cluster, name="began", first_started_at=NOW)
    ForecastOutcome.objects.create(
        workload=work, at_submission=True, told_at=NOW - timedelta(hours=2), started_at=NOW,
        p50_s=p50_s, p90_s=p90_s, raw_p50_s=60, raw_p90_s=120, gpu_class=gpu_class,
    )  # fmt: skip
    since = NOW - timedelta(days=1)
    assert bool(accuracy.scored(cluster, since, NOW)) is is_told
    assert bool(accuracy.held_of(cluster, NOW)) is is_told
