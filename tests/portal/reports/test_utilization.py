"""GPU-hours by hand: what is allocated against what is ready, by class, by queue, over time."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.http import Http404

from portal.reports.preemptions import preemptions
from portal.reports.use import use
from portal.reports.utilization import utilization
from portal.reports.waits import waits
from portal.reports.words import utilization_finding
from portal.web.reports.utilization import utilization_page
from scheduling.models import Eviction, EvictionRule, Queue, State, Transition, UsageSample
from scheduling.models.ledger import Resolution
from tests.factories import make_user, make_workload
from tests.portal.reports.conftest import END, HOUR, Small


def two_hours(small: Small) -> None:
    """16 h100 installed and ready, then 8 ready; vision holds 6 and 4 of them, platform 2 and 4."""
    for hours_ago, ready, vision, platform in ((2, 16, 6, 2), (1, 8, 4, 4)):
        at = {"hours_ago": hours_ago}
        small.sample(small.root, small.h100, installed=16, ready=ready, allocated=8, **at)
        small.sample(small.research, small.h100, allocated=vision, nominal=12, **at)
        small.sample(small.vision, small.h100, allocated=vision, nominal=8, **at)
        small.sample(small.speech, small.h100, allocated=0, nominal=4, **at)
        small.sample(small.platform, small.h100, allocated=platform, nominal=4, **at)


@pytest.mark.django_db
def test_whole_cluster_is_measured_against_ready_gpus(small: Small) -> None:
    two_hours(small)
    report = utilization(small.cluster, small.last(), small.operator)
    assert report.against == "ready"
    assert report.total.installed == 32
    assert report.total.capacity == 24
    assert report.total.down == 8
    assert report.total.allocated == 16
    assert report.total.allocated_share == pytest.approx(2 / 3)


@pytest.mark.django_db
def test_inner_queues_are_not_counted_twice(small: Small) -> None:
    two_hours(small)
    report = utilization(small.cluster, small.last(), small.operator)
    assert [(q.path, q.usage.allocated) for q in report.queues] == [
        ("research/vision", 10),
        ("platform", 6),
        ("research/speech", 0),
    ]


@pytest.mark.django_db
def test_subtree_is_measured_against_its_own_nominal(small: Small) -> None:
    two_hours(small)
    report = utilization(small.cluster, small.last(queue="research"), small.operator)
    assert report.against == "nominal"
    assert report.total.capacity == 24
    assert report.total.allocated == 10


@pytest.mark.django_db
def test_slice_counts_its_part_of_a_gpu(small: Small) -> None:
    small.sample(small.root, small.mig, installed=14, ready=14)
    small.sample(small.vision, small.mig, allocated=7, nominal=14)
    report = utilization(small.cluster, small.last(), small.operator)
    assert report.total.capacity == pytest.approx(2)
    assert report.total.allocated == pytest.approx(1)
    assert report.unit.note == "a MIG slice counts 1/7"


@pytest.mark.django_db
def test_use_that_nobody_measures_is_absent_not_zero(small: Small) -> None:
    two_hours(small)
    report = utilization(small.cluster, small.last(), small.operator)
    assert not report.total.is_measured
    assert report.total.used_share is None
    assert report.as_dict()["total"]["used_gpu_hours"] is None
    assert report.tables()[0].as_dicts()[0]["really_used_gpus"] is None


@pytest.mark.django_db
def test_use_is_a_share_of_what_was_measured(small: Small) -> None:
    small.sample(small.root, small.h100, installed=16, ready=16)
    small.sample(small.vision, small.h100, allocated=8, used=4)
    small.sample(small.platform, small.h100, allocated=4, used=None)
    total = utilization(small.cluster, small.last(), small.operator).total
    assert total.used_share == pytest.approx(0.5)
    assert total.idle == pytest.approx(4)
    assert total.measured == pytest.approx(8)


@pytest.mark.django_db
def test_partly_covered_hour_counts_only_what_it_covers(small: Small) -> None:
    small.sample(small.root, small.h100, installed=16, ready=16, seconds=900)
    small.sample(small.vision, small.h100, allocated=8, seconds=900)
    report = utilization(small.cluster, small.last(), small.operator)
    assert report.total.allocated == pytest.approx(2)
    assert report.series[0].allocated.tolist() == [8]


@pytest.mark.django_db
def test_class_without_a_row_in_an_hour_held_nothing(small: Small) -> None:
    two_hours(small)
    small.sample(small.vision, small.mig, hours_ago=1, allocated=7)
    report = utilization(small.cluster, small.last(), small.operator)
    mig = next(line for line in report.series if line.name == "mig")
    assert mig.allocated.tolist() == [0, pytest.approx(1)]


@pytest.mark.django_db
def test_series_has_a_step_for_each_hour(small: Small) -> None:
    two_hours(small)
    report = utilization(small.cluster, small.last(), small.operator)
    assert report.starts == (END - 2 * HOUR, END - HOUR)
    assert report.step_s == 3600
    assert report.series[0].capacity.tolist() == [16, 8]
    assert report.series[0].allocated.tolist() == [8, 8]


@pytest.mark.django_db
def test_short_range_prefers_minutes_and_falls_back_to_hours(small: Small) -> None:
    two_hours(small)
    assert utilization(small.cluster, small.last(3), small.operator).step_s == 3600
    at = {"hours_ago": 0.5, "resolution": Resolution.MINUTE, "seconds": 60}
    small.sample(small.root, small.h100, installed=16, ready=16, **at)
    report = utilization(small.cluster, small.last(3), small.operator)
    assert report.step_s == 60
    assert report.total.capacity == pytest.approx(16 / 60)


@pytest.mark.django_db
def test_lost_gpu_hours_are_counted_apart(small: Small) -> None:
    two_hours(small)
    work = make_workload(small.vision, gpu_classes=["h100"])
    Eviction.objects.create(
        workload=work,
        at=END - HOUR,
        rule=EvictionRule.RECLAIM,
        queue=small.vision,
        gpu_class=small.h100,
        gpus=8000,
        lost_gpu_s=7200,
    )
    report = utilization(small.cluster, small.last(), small.operator)
    assert report.total.lost == pytest.approx(2)
    assert report.total.allocated == 16


@pytest.mark.django_db
def test_period_before_is_compared_only_when_it_is_known(small: Small) -> None:
    two_hours(small)
    assert utilization(small.cluster, small.last(1, compare=True), small.operator).before
    assert utilization(small.cluster, small.last(24, compare=True), small.operator).before is None


@pytest.mark.django_db
def test_period_before_the_first_work_is_not_compared_with(small: Small) -> None:
    """Nodes were sampled for days before anybody submitted."""
    two_hours(small)
    small.sample(small.root, small.h100, hours_ago=100, installed=16, ready=16)
    filters = small.last(2, compare=True)
    assert utilization(small.cluster, filters, small.operator).before is None
    assert waits(small.cluster, filters, small.operator).before is None
    assert preemptions(small.cluster, filters, small.operator).count_before is None


@pytest.mark.django_db
@pytest.mark.parametrize(("used", "told"), [(2, 0.5), (None, None)])
def test_real_use_before_is_told_only_where_it_was_measured_as_fully(
    small: Small, used: float | None, told: float | None
) -> None:
    small.sample(small.vision, small.h100, allocated=4, used=3)
    small.sample(small.vision, small.h100, hours_ago=2, allocated=4, used=used)
    for ago in (1, 2):
        small.sample(small.root, small.h100, hours_ago=ago, installed=16, ready=16)
    small.sample(small.platform, small.h100, hours_ago=2, seconds=360, allocated=1, used=1)
    filters = small.last(1, compare=True)
    for report in (utilization, use):
        found = report(small.cluster, filters, small.operator).used_share_before
        assert found == (told if told is None else pytest.approx(2.1 / 4.1))


@pytest.mark.django_db
def test_user_filter_reads_the_workloads_own_timelines(small: Small) -> None:
    two_hours(small)
    mine = make_workload(
        small.vision,
        user="ann",
        gpus=4000,
        gpu_classes=["h100"],
        state=State.RUNNING,
        submitted_at=END - 4 * HOUR,
    )
    for minutes_ago, state, gpus in ((150, State.ADMITTED, 4000), (90, State.FINISHED, 0)):
        at = END - timedelta(minutes=minutes_ago)
        Transition.objects.create(workload=mine, at=at, to_state=state, gpus=gpus)
    make_workload(small.vision, user="bob", gpus=4000, gpu_classes=["h100"], state=State.RUNNING)
    report = utilization(small.cluster, small.last(2, user="ann"), small.operator)
    assert report.source == "workloads"
    assert report.total.allocated == pytest.approx(2)
    assert report.series[0].allocated.tolist() == [pytest.approx(2), pytest.approx(0)]
    assert report.queues[0].name == "vision"
    assert report.queues[0].usage.allocated == pytest.approx(2)


@pytest.mark.django_db
def test_one_class_of_a_user_leaves_out_what_they_held_of_another(small: Small) -> None:
    two_hours(small)
    work = make_workload(
        small.vision, user="ann", gpus=4000, gpu_class=small.mig, state=State.RUNNING
    )
    at = END - timedelta(minutes=90)
    Transition.objects.create(workload=work, at=at, to_state=State.ADMITTED, gpus=4000)
    filters = small.last(2, user="ann", gpu_classes=("h100",))
    rows = utilization(small.cluster, filters, small.operator).queues
    assert {row.usage.allocated for row in rows} == {0}


@pytest.mark.django_db
def test_lead_sees_only_the_own_subtree(small: Small) -> None:
    two_hours(small)
    report = utilization(small.cluster, small.last(), small.lead)
    assert {q.name for q in report.queues} == {"vision", "speech"}
    assert report.total.allocated == 10


@pytest.mark.django_db
def test_queue_of_others_looks_like_no_queue(small: Small) -> None:
    for name in ("platform", "nowhere"):
        with pytest.raises(ValidationError, match=f"no queue {name}"):
            utilization(small.cluster, small.last(queue=name), small.lead)


@pytest.mark.django_db
def test_person_without_a_queue_finds_no_report(small: Small) -> None:
    with pytest.raises(Http404):
        utilization(small.cluster, small.last(), make_user())


@pytest.mark.django_db
def test_range_without_samples_is_empty(small: Small) -> None:
    report = utilization(small.cluster, small.last(), small.operator)
    assert report.is_empty
    assert report.total.allocated_share is None
    assert report.tables()[0].rows == []


@pytest.mark.django_db
def test_queries_do_not_grow_with_the_history(
    small: Small, django_assert_num_queries: object
) -> None:
    two_hours(small)
    with django_assert_num_queries(13):  # type: ignore[operator]
        utilization(small.cluster, small.last(), small.operator)
    with django_assert_num_queries(16):  # type: ignore[operator]
        utilization(small.cluster, small.last(1, compare=True), small.operator)


def scattered(small: Small, seed: int) -> None:
    """Hours with gaps, partly covered, borrowed beyond what is ready, partly measured."""
    dice = random.Random(seed)
    for hours_ago in range(1, 40):
        if dice.random() < 0.3:
            continue
        at = {"hours_ago": hours_ago, "seconds": dice.choice((600, 3599, 3600))}
        for gpu_class in (small.h100, small.mig):
            small.sample(small.root, gpu_class, installed=16, ready=dice.randint(0, 16), **at)
            for queue in (small.vision, small.speech, small.platform):
                held = dice.randint(0, 12)
                used = dice.choice((None, held * dice.random()))
                small.sample(queue, gpu_class, allocated=held, nominal=4, used=used, **at)


def held_work(small: Small, queue: Queue, began: datetime, ended: datetime | None = None) -> None:
    """A workload of rea that holds 4 h100 from ``began`` on."""
    early = {"submitted_at": began - HOUR, "user": "rea", "gpu_class": small.h100}
    work = make_workload(queue, state=State.RUNNING, gpus=4000, **early)
    for at, gpus in ((began, 4000), (ended, 0)):
        if at is not None:
            Transition.objects.create(workload=work, at=at, to_state=State.RUNNING, gpus=gpus)


def worked(small: Small, seed: int) -> None:
    """Workloads of one person that came and went, before and after what was sampled too."""
    dice = random.Random(seed)
    for _ in range(30):
        began = END - HOUR * dice.uniform(0, 60)
        queue = dice.choice((small.vision, small.speech))
        held_work(small, queue, began, began + HOUR * dice.uniform(0, 9))


SUMMED = (
    *("installed", "capacity", "allocated", "known", "measured", "used"),
    *("lost", "free", "down", "idle"),
)


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("asked", [{}, {"queue": "research"}, {"user": "rea"}])
def test_every_total_is_the_sum_of_its_parts(
    small: Small, seed: int, asked: dict[str, str]
) -> None:
    scattered(small, seed)
    worked(small, seed)
    report = utilization(small.cluster, small.last(48, **asked), small.operator)
    for name in SUMMED:
        parts = sum(getattr(row.usage, name) for row in report.classes)
        assert parts == pytest.approx(getattr(report.total, name)), name
    held = sum(row.usage.allocated for row in report.queues)
    assert held == pytest.approx(report.total.allocated)


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(8))
def test_shown_hours_of_classes_add_up_to_the_shown_total(small: Small, seed: int) -> None:
    scattered(small, seed)
    worked(small, seed)
    page = utilization_page(utilization(small.cluster, small.last(48), small.operator))
    for name in ("capacity", "allocated", "free", "lost"):
        shown = [amounts[name] for *_, amounts in page["class_rows"]]
        parts = [0 if text.startswith("<") else float(text.replace(",", "")) for text in shown]
        assert sum(parts) == pytest.approx(float(page["sums"][name].replace(",", ""))), name


@pytest.mark.django_db
def test_what_is_held_was_used_idle_or_not_measured(small: Small) -> None:
    held_work(small, small.vision, END - 9 * HOUR)
    small.sample(small.root, small.h100, installed=16, ready=16, hours_ago=2)
    small.sample(small.vision, small.h100, allocated=4, used=3, hours_ago=2)
    report = utilization(small.cluster, small.last(24), small.operator)
    h100 = next(row.usage for row in report.classes if row.name == small.h100.name)
    assert (h100.allocated, h100.used, h100.idle) == (pytest.approx(40), 3, 1)
    assert utilization_page(report)["sums"]["unmeasured"] == "36"


@pytest.mark.django_db
def test_tables_and_json_say_what_nobody_measured(small: Small) -> None:
    held_work(small, small.vision, END - 9 * HOUR)
    small.sample(small.root, small.h100, installed=16, ready=16, hours_ago=2)
    small.sample(small.vision, small.h100, allocated=4, used=3, hours_ago=2)
    report = utilization(small.cluster, small.last(24), small.operator)
    tables = {table.name: table.as_dicts() for table in report.tables()}
    for row in (tables["classes"][0], tables["queues"][0], report.as_dict()["total"]):
        parts = row["held_and_idle_gpu_hours"] + row["not_measured_gpu_hours"]
        used = row.get("really_used_gpu_hours", row.get("used_gpu_hours"))
        assert used + parts == pytest.approx(row["allocated_gpu_hours"])


@pytest.mark.django_db
def test_samples_from_before_the_first_work_are_no_part_of_a_share(small: Small) -> None:
    """What was sampled then is held by work that nobody knows."""
    two_hours(small)
    for hours_ago in (3, 4, 5):
        at = {"hours_ago": hours_ago}
        small.sample(small.root, small.h100, installed=16, ready=16, allocated=14, **at)
        row = {"queue": small.vision, "gpu_class": small.h100, "resolution": Resolution.HOUR}
        UsageSample.objects.create(
            **row, start=END - HOUR * hours_ago, seconds=3600, allocated_gpus=14000,
            nominal_gpus=8000,
        )  # fmt: skip
    report = utilization(small.cluster, small.last(), small.operator)
    assert report.total.capacity == 24
    assert report.total.known == pytest.approx(report.total.allocated) == pytest.approx(16)
    vision = report.queues[0].usage
    assert (vision.capacity, vision.known) == (16, 10)


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("asked", [{}, {"queue": "research"}, {"user": "rea"}])
def test_every_share_is_the_ratio_of_what_stands_beside_it(
    small: Small, seed: int, asked: dict[str, str]
) -> None:
    scattered(small, seed)
    worked(small, seed)
    report = utilization(small.cluster, small.last(48, **asked), small.operator)
    tables = {table.name: table.as_dicts() for table in report.tables()}
    for name, against in (("classes", report.against), ("queues", "nominal")):
        for row in tables[name]:
            held, of = row["sampled_allocated_gpu_hours"], row[f"{against}_gpu_hours"]
            told = row[f"allocated_share_of_{against}"]
            assert told == (None if not of else pytest.approx(held / of, abs=2e-3 / of))
    total = report.as_dict()["total"]
    if total["capacity_gpu_hours"]:
        ratio = total["sampled_allocated_gpu_hours"] / total["capacity_gpu_hours"]
        assert total["allocated_share"] == pytest.approx(ratio, rel=1e-3)


@pytest.mark.django_db
def test_what_is_installed_is_absent_not_zero_for_a_subtree(small: Small) -> None:
    two_hours(small)
    report = utilization(small.cluster, small.last(), small.lead)
    assert {row["installed_gpus"] for row in report.tables()[0].as_dicts()} == {None}
    assert report.as_dict()["total"]["installed_gpu_hours"] is None
    whole = utilization(small.cluster, small.last(), small.operator)
    assert whole.as_dict()["total"]["installed_gpu_hours"] == 32


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("asked", [{}, {"queue": "research"}, {"user": "rea"}])
def test_means_of_the_series_add_up_to_the_totals(
    small: Small, seed: int, asked: dict[str, str]
) -> None:
    scattered(small, seed)
    worked(small, seed)
    report = utilization(small.cluster, small.last(48, **asked), small.operator)
    rows = report.tables()[0].as_dicts()
    for column, total in (
        ("allocated_gpus", report.total.known),
        (f"{report.against}_gpus", report.total.capacity),
    ):
        summed = sum((row[column] or 0) * row["seconds_known"] / 3600 for row in rows)
        assert summed == pytest.approx(total, rel=1e-4), column


@pytest.mark.django_db
def test_mean_is_over_the_time_that_is_known(small: Small) -> None:
    two_hours(small)
    report = utilization(small.cluster, small.last(24), small.operator)
    assert report.covered_hours == pytest.approx(2)
    assert "8 GPUs all the time of the 2 hours that are known" in str(utilization_finding(report))


@pytest.mark.django_db
def test_work_is_charged_for_all_its_time_and_compared_over_what_is_known(small: Small) -> None:
    two_hours(small)
    held_work(small, small.vision, END - 9 * HOUR)
    report = utilization(small.cluster, small.last(24, user="rea"), small.operator)
    assert report.total.allocated == pytest.approx(36)
    assert report.total.known == pytest.approx(8)
    assert report.total.allocated_share == pytest.approx(8 / 24)
