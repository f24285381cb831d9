"""Waits from submission to first start, their groups, and what still waits."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest

from portal.display.spread import LEAST
from portal.reports.figures.waits import FEW, by_day, scale_top, when_to_submit
from portal.reports.waits import waits
from portal.reports.words import waits_finding
from portal.selectors import overview as figures
from portal.web.reports.pages import waits_page
from scheduling.models import GpuClass, Outcome, Queue, State, Transition, Workload
from tests.factories import make_workload
from tests.portal.reports.conftest import END, HOUR, Small


def started(
    queue: Queue,
    gpu_class: GpuClass,
    *,
    wait_s: float,
    at: datetime = END - HOUR,
    gpus: int = 1000,
    members: int = 1,
    **fields: object,
) -> Workload:
    """Finished work that first started at ``at`` after ``wait_s``."""
    return make_workload(
        queue,
        gpus=gpus,
        min_members=members,
        gpu_class=gpu_class,
        gpu_classes=[gpu_class.name],
        state=State.FINISHED,
        submitted_at=at - timedelta(seconds=wait_s),
        first_started_at=at,
        finished_at=END,
        **fields,
    )


@pytest.mark.django_db
def test_percentiles_are_those_of_the_first_starts_in_the_range(small: Small) -> None:
    for wait_s in (60, 120, 180):
        started(small.vision, small.h100, wait_s=wait_s)
    started(small.vision, small.h100, wait_s=9999, at=END - 30 * HOUR)
    report = waits(small.cluster, small.last(), small.operator)
    assert report.total.count == 3
    assert report.total.p50 == pytest.approx(120)
    assert report.total.p90 == pytest.approx(168)


@pytest.mark.django_db
def test_waits_are_grouped_by_class_and_size(small: Small) -> None:
    started(small.vision, small.h100, wait_s=60, gpus=8000, members=4)
    started(small.vision, small.h100, wait_s=30, gpus=500)
    started(small.speech, small.mig, wait_s=10)
    report = waits(small.cluster, small.last(), small.operator)
    assert [(c.name, c.spread.count) for c in report.classes] == [("h100", 2), ("mig", 1)]
    sizes = {size.label: size.spread for size in report.sizes}
    assert sizes["1 GPU or less"].count == 2
    assert sizes["9–32"].p50 == pytest.approx(60)
    assert sizes["33 and more"].p50 is None


@pytest.mark.django_db
def test_queues_stand_by_their_p90_and_the_first_is_said(small: Small) -> None:
    for queue, wait_s in ((small.vision, 60), (small.platform, 7200)):
        for _ in range(LEAST):
            started(queue, small.h100, wait_s=wait_s)
    started(small.speech, small.h100, wait_s=86400)
    report = waits(small.cluster, small.last(), small.operator)
    assert [(row.path, row.spread.count) for row in report.queues] == [
        ("platform", LEAST), ("research/vision", LEAST), ("research/speech", 1),
    ]  # fmt: skip
    assert "platform waits longest, nine of ten within 2 h." in waits_finding(report).rest
    assert [row.path for row in waits_page(report)["queue_rows"]] == [
        "platform", "research/vision", "research/speech",
    ]  # fmt: skip


@pytest.mark.django_db
def test_one_queue_alone_is_not_said_to_wait_longest(small: Small) -> None:
    for _ in range(LEAST):
        started(small.vision, small.h100, wait_s=60)
    report = waits(small.cluster, small.last(), small.operator)
    assert "waits longest" not in waits_finding(report).rest


@pytest.mark.django_db
def test_gpus_that_were_down_stand_above_the_waits_as_one_line_a_spell(small: Small) -> None:
    started(small.vision, small.h100, wait_s=60)
    for hours_ago, ready in ((6, 16), (5, 8), (4, 0), (3, 16), (2, 8), (1, 16)):
        small.sample(small.root, small.h100, hours_ago=hours_ago, installed=16, ready=ready)
    report = waits(small.cluster, small.last(), small.lead)
    assert [(one.name, one.since, one.until, one.gpus) for one in report.down] == [
        ("h100", END - 5 * HOUR, END - 3 * HOUR, 16),
        ("h100", END - 2 * HOUR, END - HOUR, 8),
    ]
    drawn = by_day(report).as_dict()["layout"]
    assert [(one["x0"][11:16], one["x1"][11:16]) for one in drawn["shapes"]] == [
        (f"{END - 5 * HOUR:%H:%M}", f"{END - 3 * HOUR:%H:%M}"),
        (f"{END - 2 * HOUR:%H:%M}", f"{END - HOUR:%H:%M}"),
    ]
    assert drawn["annotations"][0]["text"] == "16 h100 down"


@pytest.mark.django_db
def test_gpus_down_over_the_whole_range_are_said_so(small: Small) -> None:
    started(small.vision, small.h100, wait_s=60)
    for hours_ago in range(1, 25):
        small.sample(small.root, small.h100, hours_ago=hours_ago, installed=16, ready=8)
    report = waits(small.cluster, small.last(), small.operator)
    assert [is_whole for _, is_whole in waits_page(report)["down_rows"]] == [True]


@pytest.mark.django_db
def test_work_that_still_waits_is_reported_apart(small: Small) -> None:
    started(small.vision, small.h100, wait_s=60)
    make_workload(
        small.vision, gpus=2000, min_members=4, gpu_classes=["h100"], submitted_at=END - 2 * HOUR
    )
    report = waits(small.cluster, small.last(), small.operator)
    assert report.total.count == 1
    assert (report.waiting.count, report.waiting.gpus) == (1, 8000)
    assert report.waiting.longest_s == pytest.approx(7200)


@pytest.mark.django_db
def test_work_that_started_after_the_range_still_waited_at_its_end(small: Small) -> None:
    started(small.vision, small.h100, wait_s=5400, at=END + HOUR)
    report = waits(small.cluster, small.last(), small.operator)
    assert (report.total.count, report.waiting.count) == (0, 1)
    assert report.waiting.longest_s == pytest.approx(1800)


@pytest.mark.django_db
def test_work_cancelled_before_its_start_has_no_wait(small: Small) -> None:
    make_workload(
        small.vision,
        state=State.FINISHED,
        outcome=Outcome.CANCELLED,
        submitted_at=END - 2 * HOUR,
        finished_at=END - HOUR,
    )
    report = waits(small.cluster, small.last(), small.operator)
    assert (report.total.count, report.waiting.count, report.waiting.cancelled) == (0, 0, 1)


@pytest.mark.django_db
def test_evicted_work_counts_for_the_class_that_it_held(small: Small) -> None:
    work = make_workload(
        small.vision,
        gpu_classes=["mig", "h100"],
        state=State.REQUEUED,
        submitted_at=END - 3 * HOUR,
        first_started_at=END - 2 * HOUR,
    )
    Transition.objects.create(
        workload=work, at=END - 2 * HOUR, to_state=State.RUNNING, gpus=1000, gpu_class=small.h100
    )
    report = waits(small.cluster, small.last(gpu_classes=("h100",)), small.operator)
    assert report.total.p50 == pytest.approx(3600)
    assert waits(small.cluster, small.last(gpu_classes=("mig",)), small.operator).is_empty


@pytest.mark.django_db
def test_worst_hour_is_one_with_enough_work_to_tell(small: Small) -> None:
    monday = datetime.fromisoformat("2026-11-16T09:10:00+00:00")
    for _ in range(5):
        started(small.vision, small.h100, wait_s=600, at=monday + timedelta(minutes=10))
    started(small.vision, small.h100, wait_s=86400, at=END - HOUR)
    report = waits(small.cluster, small.last(24 * 7, zone="Europe/Berlin"), small.operator)
    assert report.worst_hour == 10
    assert report.week[10].count == 5


@pytest.mark.django_db
def test_hour_with_too_few_starts_is_named_as_left_out_and_marked_on_the_map(small: Small) -> None:
    monday = datetime.fromisoformat("2026-11-16T09:10:00+00:00")
    for _ in range(LEAST):
        started(small.vision, small.h100, wait_s=600, at=monday + timedelta(minutes=10))
    asked = small.last(24 * 7, zone="UTC")
    alone = waits(small.cluster, asked, small.operator)
    assert str(waits_finding(alone).rest).startswith("The worst hour to submit is Monday 09:00")
    assert when_to_submit(alone).as_dict()["data"][1]["x"] == []
    assert waits_page(alone)["few"] == ""

    started(small.vision, small.h100, wait_s=86400, at=END - HOUR)
    report = waits(small.cluster, asked, small.operator)

    said = str(waits_finding(report).rest)
    assert said.startswith("Of hours with at least 5 starts, the worst hour to submit is Monday 09")
    marked = when_to_submit(report).as_dict()["data"][1]
    assert [24 * day + hour for hour, day in zip(marked["x"], marked["y"], strict=True)] == [
        hour for hour, spread in enumerate(report.week) if spread.count == 1
    ]
    assert waits_page(report)["few"] == FEW


@pytest.mark.django_db
def test_user_and_type_narrow_the_work(small: Small) -> None:
    started(small.vision, small.h100, wait_s=60, user="ann")
    started(small.vision, small.h100, wait_s=60, user="bob", type="interactive")
    assert waits(small.cluster, small.last(user="ann"), small.operator).total.count == 1
    assert waits(small.cluster, small.last(type="interactive"), small.operator).total.count == 1
    assert waits(small.cluster, small.last(type="inference"), small.operator).is_empty


@pytest.mark.django_db
def test_lead_sees_no_waits_of_other_subtrees(small: Small) -> None:
    started(small.vision, small.h100, wait_s=60)
    started(small.platform, small.h100, wait_s=600)
    assert waits(small.cluster, small.last(), small.lead).total.p50 == pytest.approx(60)


@pytest.mark.django_db
def test_days_sum_to_the_total(small: Small) -> None:
    for hours_ago in (2, 3, 40, 60):
        started(small.vision, small.h100, wait_s=60, at=END - HOUR * hours_ago)
    report = waits(small.cluster, small.last(72, zone="Europe/Berlin"), small.operator)
    assert report.periods.unit == "day"
    assert [spread.count for spread in report.days] == [1, 1, 0, 2]
    assert sum(spread.count for spread in report.week) == report.total.count == 4


@pytest.mark.django_db
def test_waits_of_a_class_are_sorted(small: Small) -> None:
    for wait_s in (300, 60, 120):
        started(small.vision, small.h100, wait_s=wait_s)
    report = waits(small.cluster, small.last(), small.operator)
    assert np.allclose(report.classes[0].waits, [60, 120, 300])


@pytest.mark.django_db
@pytest.mark.parametrize("count", [1, 3])
def test_queries_do_not_grow_with_the_work(
    small: Small, count: int, django_assert_num_queries: object
) -> None:
    for _ in range(count):
        started(small.vision, small.h100, wait_s=60)
    with django_assert_num_queries(6):  # type: ignore[operator]
        waits(small.cluster, small.last(), small.operator)


@pytest.mark.django_db
def test_work_that_waits_again_after_an_eviction_is_counted_apart(small: Small) -> None:
    begun = {"first_started_at": END - 5 * HOUR, "submitted_at": END - 6 * HOUR}
    work = make_workload(
        small.vision, gpus=1000, min_members=14, gpu_classes=["mig"], state=State.REQUEUED, **begun
    )
    Transition.objects.create(workload=work, at=END - HOUR, to_state=State.REQUEUED)
    ran_then = make_workload(small.vision, gpu_classes=["h100"], state=State.REQUEUED, **begun)
    Transition.objects.create(workload=ran_then, at=END + HOUR, to_state=State.REQUEUED)
    Transition.objects.create(workload=ran_then, at=END - 2 * HOUR, to_state=State.RUNNING)
    waiting = waits(small.cluster, small.last(), small.operator).waiting
    assert (waiting.count, waiting.again) == (0, 1)
    assert waiting.again_gpus == pytest.approx(2000)


@pytest.mark.django_db
def test_what_waits_now_is_as_many_as_the_overview_says(small: Small) -> None:
    make_workload(small.vision, gpu_classes=["h100"], submitted_at=END - HOUR)
    work = make_workload(
        small.speech,
        gpu_classes=["mig"],
        state=State.REQUEUED,
        first_started_at=END - 5 * HOUR,
        submitted_at=END - 6 * HOUR,
    )
    Transition.objects.create(workload=work, at=END - HOUR, to_state=State.REQUEUED)
    there = figures.waiting(small.cluster, small.cluster.gpu_classes.all())
    here = waits(small.cluster, small.last(), small.operator).waiting
    assert here.count + here.again == there.count
    assert here.gpus + here.again_gpus == pytest.approx(there.gpus)


def lines_of(small: Small) -> dict[str, list[float | None]]:
    figure = by_day(waits(small.cluster, small.last(72), small.operator))
    return {line["name"]: line["y"] for line in figure.as_dict()["data"]}


@pytest.mark.django_db
def test_period_with_too_few_starts_has_no_point_on_the_lines(small: Small) -> None:
    for _ in range(LEAST):
        started(small.vision, small.h100, wait_s=7200, at=END - 30 * HOUR)
    started(small.vision, small.h100, wait_s=0, at=END - HOUR)
    for values in lines_of(small).values():
        assert [value for value in values if value is not None] == [7200]


@pytest.mark.django_db
def test_one_long_hour_leaves_the_others_their_colours(small: Small) -> None:
    for hour in range(1, 25):
        for _ in range(LEAST):
            started(small.vision, small.h100, wait_s=600, at=END - hour * HOUR)
    started(small.vision, small.h100, wait_s=60 * 3600, at=END - HOUR)
    top = scale_top(waits(small.cluster, small.last(30), small.operator))
    assert top.value == pytest.approx(600)
    assert top.is_passed
