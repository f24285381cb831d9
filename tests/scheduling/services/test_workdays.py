"""What work held and how it ended, by day: exact against single workloads, whatever is rolled up."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from scheduling.models import (
    Cluster,
    Eviction,
    EvictionRule,
    GpuUse,
    Outcome,
    Queue,
    State,
    Transition,
    WorkDay,
    Workload,
)
from scheduling.services.ledger import retention, workdays
from scheduling.services.ledger.retention import retain
from scheduling.services.ledger.singles import FIGURES, Worked, WorkFilter, between
from scheduling.services.ledger.workdays import DAY, read, roll_days, rolled_to
from tests.factories import make_cluster, make_workload

pytestmark = pytest.mark.django_db
T0 = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def cluster() -> Cluster:
    made = make_cluster(clock_real=datetime.now(UTC))
    for name in ("h100", "l4"):
        made.gpu_classes.create(name=name)
    root = Queue.objects.create(cluster=made, name="fra1")
    for name in ("vision", "speech"):
        Queue.objects.create(cluster=made, name=name, parent=root)
    return stand_at(made, T0 + 6 * DAY + 5 * HOUR)


def stand_at(cluster: Cluster, when: datetime) -> Cluster:
    cluster.clock_start, cluster.clock_speed = when, 0
    cluster.save()
    return cluster


def live(
    cluster: Cluster,
    begin: datetime,
    hours: float | None,
    *,
    gpus: int = 2,
    queue: str = "vision",
    gpu_class: str = "h100",
    outcome: str = Outcome.SUCCEEDED,
    wait: timedelta = HOUR,
    **fields: object,
) -> Workload:
    """Work of one member that held ``gpus`` from ``begin`` for ``hours``; None goes on."""
    end = None if hours is None else begin + hours * HOUR
    work = make_workload(
        cluster.queues.get(name=queue),
        gpus=gpus * 1000,
        gpu_class=cluster.gpu_classes.get(name=gpu_class),
        submitted_at=begin - wait,
        first_started_at=begin,
        finished_at=end,
        state=State.FINISHED if end else State.RUNNING,
        outcome=outcome if end else "",
        used_gpu_s=gpus * (hours or 0) * 3600,
        started_at=begin,
        admitted_at=begin,
        members=0 if end else 1,
        **fields,
    )
    Transition.objects.create(workload=work, at=begin, to_state=State.RUNNING, gpus=gpus * 1000)
    if end:
        Transition.objects.create(workload=work, at=end, to_state=State.FINISHED, gpus=0)
    return work


def some_past(cluster: Cluster, seed: int, count: int = 40) -> None:
    """Work of all kinds in the week from T0, with evictions and measured hours."""
    dice = random.Random(seed)
    for _ in range(count):
        begin = T0 + dice.uniform(-24, 140) * HOUR
        hours = dice.choice([None, dice.uniform(0.01, 60)])
        work = live(
            cluster, begin, hours,
            gpus=dice.randint(1, 9), queue=dice.choice(["vision", "speech"]),
            gpu_class=dice.choice(["h100", "l4"]), outcome=dice.choice(Outcome.values),
            user=dice.choice(["ann", "ben"]), type=dice.choice(["training", "inference"]),
        )  # fmt: skip
        if dice.random() < 0.3:
            Eviction.objects.create(
                workload=work, at=begin + HOUR / 2, rule=EvictionRule.RECLAIM, queue=work.queue,
                gpu_class=work.gpu_class, gpus=work.gpus, lost_gpu_s=dice.uniform(0, 9000),
            )  # fmt: skip
        if dice.random() < 0.5:
            start = begin.replace(minute=0, second=0, microsecond=0)
            GpuUse.objects.create(
                workload=work, gpu_class=work.gpu_class, start=start, gpu_s=600, active_gpu_s=400
            )


def all_of(cluster: Cluster, **narrow: str) -> WorkFilter:
    whole = WorkFilter.all_of(cluster)
    return WorkFilter(whole.queues, whole.gpu_classes, **narrow)


def same(one: Worked, other: Worked) -> bool:
    return one.keys() == other.keys() and all(
        getattr(one[kin], name) == pytest.approx(getattr(other[kin], name), abs=1e-6)
        for kin in one
        for name in FIGURES
    )


@pytest.mark.parametrize("seed", range(6))
def test_any_range_read_from_days_is_exact_against_single_workloads(
    cluster: Cluster, seed: int
) -> None:
    some_past(cluster, seed)
    roll_days(cluster)
    dice = random.Random(seed)
    for narrow in ({}, {"user": "ann"}, {"type": "inference"}):
        for _ in range(6):
            start = T0 + dice.uniform(-30, 148) * HOUR
            end = min(start + dice.uniform(1, 150) * HOUR, cluster.now())
            chosen = all_of(cluster, **narrow)
            assert same(read(cluster, chosen, start, end), between(chosen, (start, end)))


def test_whole_days_are_read_from_rows_alone(cluster: Cluster) -> None:
    live(cluster, T0 + HOUR, 30)
    roll_days(cluster)
    Workload.objects.all().delete()
    found = read(cluster, all_of(cluster), T0, T0 + 3 * DAY)
    assert [work.held_gpu_s / 3600 for work in found.values()] == [pytest.approx(60)]


def test_work_that_goes_on_counts_up_to_the_end_of_the_range(cluster: Cluster) -> None:
    live(cluster, T0 + 20 * HOUR, None, gpus=3)
    (work,) = between(all_of(cluster), (T0 + DAY, T0 + 2 * DAY)).values()
    assert work.held_gpu_s == 3 * 24 * 3600


def test_figures_of_a_day_count_what_happened_on_it(cluster: Cluster) -> None:
    live(cluster, T0 + HOUR, 2, gpus=2, outcome=Outcome.FAILED, wait=HOUR / 2)
    live(cluster, T0 + 30 * HOUR, 1)
    (work,) = between(all_of(cluster), (T0, T0 + DAY)).values()
    assert (work.started, work.waited_s, work.failed, work.succeeded) == (1, 1800, 1, 0)
    assert work.failed_gpu_s == 4 * 3600


def test_work_that_was_put_back_to_wait_keeps_its_start_evictions_and_use(cluster: Cluster) -> None:
    work = live(cluster, T0 + HOUR, None, wait=HOUR / 2)
    l4, h100 = (cluster.gpu_classes.get(name=name) for name in ("l4", "h100"))
    Transition.objects.filter(workload=work).update(gpu_class=h100)
    at = T0 + 2 * HOUR
    Transition.objects.create(workload=work, at=at, to_state=State.REQUEUED, gpus=0)
    Eviction.objects.create(
        workload=work, at=at, rule=EvictionRule.RECLAIM, queue=work.queue, gpu_class=h100,
        gpus=work.gpus, lost_gpu_s=90,
    )  # fmt: skip
    GpuUse.objects.create(
        workload=work, gpu_class=h100, start=T0 + HOUR, gpu_s=600, active_gpu_s=400
    )
    told = [between(all_of(cluster), (T0, T0 + DAY))]
    for now in (None, l4):
        work.gpu_class = now
        work.save(update_fields=["gpu_class"])
        told.append(between(all_of(cluster), (T0, T0 + DAY)))
    assert told[1] == told[0]
    assert [(kin.gpu_class, work.evictions, work.lost_gpu_s) for kin, work in told[2].items()] == [
        (h100.pk, 1, 90), (l4.pk, 0, 0),
    ]  # fmt: skip


def test_work_that_never_ran_is_no_completion(cluster: Cluster) -> None:
    make_workload(
        cluster.queues.get(name="vision"), state=State.FINISHED, outcome=Outcome.CANCELLED,
        submitted_at=T0, finished_at=T0 + HOUR, gpu_class=cluster.gpu_classes.get(name="h100"),
    )  # fmt: skip
    assert between(all_of(cluster), (T0, T0 + DAY)) == {}


def test_rolling_up_again_changes_nothing(cluster: Cluster) -> None:
    some_past(cluster, seed=1)
    assert roll_days(cluster) > 0
    rows = list(WorkDay.objects.values())
    assert roll_days(cluster, since=T0 - 2 * DAY) == 0
    assert list(WorkDay.objects.values()) == rows


TODAY = T0 + 6 * DAY
"""At five o'clock."""


def test_present_day_is_rolled_up_as_far_as_its_hours_are_over(cluster: Cluster) -> None:
    live(cluster, T0, None)
    stand_at(cluster, TODAY + 5 * HOUR + workdays.BEHIND_WALL)
    roll_days(cluster)
    assert rolled_to(cluster) == TODAY + 5 * HOUR
    assert set(WorkDay.objects.filter(start=TODAY).values_list("seconds", flat=True)) == {5 * 3600}


def test_hour_of_which_something_may_be_written_yet_is_not_rolled_up(cluster: Cluster) -> None:
    live(cluster, T0, None)
    roll_days(cluster)
    assert rolled_to(cluster) == TODAY + 4 * HOUR


def test_hours_of_today_are_read_from_rows_alone(cluster: Cluster) -> None:
    live(cluster, TODAY + HOUR, 2)
    roll_days(cluster)
    Workload.objects.all().delete()
    found = read(cluster, all_of(cluster), TODAY, TODAY + 5 * HOUR)
    assert [work.held_gpu_s / 3600 for work in found.values()] == [4]


def test_range_that_ends_within_the_rolled_hours_is_read_from_single_workloads(
    cluster: Cluster,
) -> None:
    live(cluster, TODAY + HOUR, None)
    roll_days(cluster)
    window = (TODAY, TODAY + 2 * HOUR)
    (work,) = read(cluster, all_of(cluster), *window).values()
    assert work.held_gpu_s == 2 * 3600


def test_rolled_up_hours_are_those_of_the_ledger_to_the_digit(cluster: Cluster) -> None:
    for hour in range(-3, 5):
        live(cluster, TODAY + hour * HOUR, 2, gpus=hour + 4)
    roll_days(cluster)
    window = (TODAY - 3 * DAY, cluster.now())
    assert read(cluster, all_of(cluster), *window) == between(all_of(cluster), window)


def test_pass_that_comes_while_a_range_is_read_counts_nothing_twice(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(cluster, TODAY, None)
    roll_days(cluster)
    later = rolled_to(cluster)
    known = iter([TODAY + 2 * HOUR, later])
    monkeypatch.setattr(workdays, "rolled_to", lambda _cluster: next(known))
    (work,) = read(cluster, all_of(cluster), TODAY, cluster.now()).values()
    assert work.held_gpu_s == 2 * 5 * 3600


def test_work_of_today_that_is_seen_late_is_corrected(cluster: Cluster) -> None:
    live(cluster, TODAY, None)
    roll_days(cluster)
    live(cluster, TODAY + HOUR, 1, user="late")
    assert roll_days(cluster) == 1
    assert WorkDay.objects.get(user="late").held_gpu_s == 2 * 3600


def test_day_that_is_over_takes_the_place_of_its_hours(cluster: Cluster) -> None:
    live(cluster, TODAY, None)
    roll_days(cluster)
    stand_at(cluster, TODAY + 25 * HOUR)
    roll_days(cluster)
    assert WorkDay.objects.get(start=TODAY).held_gpu_s == 2 * 24 * 3600


def test_work_that_is_seen_late_is_corrected(cluster: Cluster) -> None:
    live(cluster, T0, None)
    roll_days(cluster)
    live(cluster, T0 + 4 * DAY + HOUR, 2, user="late")
    assert roll_days(cluster) == 1
    assert WorkDay.objects.get(user="late").held_gpu_s == 4 * 3600


def test_row_of_work_that_is_gone_goes_too(cluster: Cluster) -> None:
    live(cluster, T0, None)
    gone = live(cluster, T0 + 5 * DAY, 2, user="gone")
    roll_days(cluster)
    gone.delete()
    roll_days(cluster)
    assert not WorkDay.objects.filter(user="gone").exists()


def test_long_past_is_rolled_up_in_passes_without_a_gap(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(cluster, T0, None)
    monkeypatch.setattr(workdays, "MOST_DAYS", 4)
    roll_days(cluster)
    assert rolled_to(cluster) == T0 + 4 * DAY
    roll_days(cluster)
    assert WorkDay.objects.count() == 6


def test_days_without_work_hold_nobody_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(cluster, T0 - 50 * DAY, 1)
    live(cluster, T0 + 5 * DAY, 1)
    monkeypatch.setattr(workdays, "MOST_DAYS", 3)
    roll_days(cluster)
    assert rolled_to(cluster) == T0 + 6 * DAY


def test_queries_of_a_range_do_not_grow_with_its_work(
    cluster: Cluster, django_assert_max_num_queries: object
) -> None:
    some_past(cluster, seed=2, count=60)
    roll_days(cluster)
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        read(cluster, all_of(cluster), T0 + HOUR, T0 + 5 * DAY + HOUR)


KEPT = 5 * DAY


@pytest.fixture
def kept_for_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the years of which each day would be read."""
    monkeypatch.setattr(retention, "RUNS_KEPT", KEPT)


def test_old_work_goes_once_its_day_is_kept(cluster: Cluster, kept_for_days: None) -> None:
    live(cluster, T0 + HOUR, 2)
    young = live(cluster, T0 + KEPT, 2)
    stand_at(cluster, T0 + KEPT + 2 * DAY)
    roll_days(cluster)
    retain(cluster)
    assert list(Workload.objects.all()) == [young]
    assert WorkDay.objects.filter(start=T0).get().held_gpu_s == 4 * 3600


def test_old_work_stays_until_its_day_is_kept(cluster: Cluster, kept_for_days: None) -> None:
    live(cluster, T0 + HOUR, 2)
    live(cluster, T0 + 3 * HOUR, 1, user="ben")
    roll_days(cluster, since=T0)
    WorkDay.objects.update(start=T0 - DAY)
    stand_at(cluster, T0 + KEPT + 2 * DAY)
    retain(cluster)
    assert Workload.objects.count() == 2
