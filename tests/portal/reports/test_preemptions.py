"""Evictions by rule, who for whom, and what they threw away."""

from __future__ import annotations

from datetime import datetime

import pytest

from portal.reports.filters import OUTSIDE
from portal.reports.preemptions import preemptions
from scheduling.models import Cycle, Eviction, EvictionRule, Queue
from tests.factories import make_workload
from tests.portal.reports.conftest import END, HOUR, Small


def evict(
    small: Small,
    queue: Queue,
    for_queue: Queue | None = None,
    *,
    rule: str = EvictionRule.RECLAIM,
    at: datetime = END - HOUR,
    gpus: int = 8,
    asked: int = 8,
    lost_hours: float = 1,
    cycle: Cycle | None = None,
    for_workload: object = None,
    **more: str,
) -> Eviction:
    winner = for_workload or (make_workload(for_queue) if for_queue else None)
    return Eviction.objects.create(
        workload=make_workload(queue),
        cycle=cycle,
        at=at,
        rule=rule,
        queue=queue,
        for_workload=winner,
        for_queue=for_queue,
        gpu_class=small.h100,
        gpus=gpus * 1000,
        asked_gpus=asked * 1000 if winner else 0,
        lost_gpu_s=lost_hours * 3600,
        **more,
    )


@pytest.mark.django_db
def test_losses_are_summed_and_related_to_what_was_allocated(small: Small) -> None:
    small.sample(small.root, small.h100, installed=16, ready=16)
    small.sample(small.vision, small.h100, allocated=10)
    evict(small, small.vision, small.platform, lost_hours=1)
    evict(small, small.vision, small.platform, lost_hours=3)
    report = preemptions(small.cluster, small.last(), small.operator)
    assert (report.count, report.lost) == (2, pytest.approx(4))
    assert report.lost_share == pytest.approx(0.4)
    assert report.each.p50 == pytest.approx(2)


@pytest.mark.django_db
def test_evictions_in_vain_are_counted_by_what_allowed_them(small: Small) -> None:
    for in_vain, hours in (("", 1), ("seats_gone", 2), ("overdue", 4)):
        evict(
            small, small.vision, small.platform, lost_hours=hours, allowed_by="rounded",
            in_vain=in_vain,
        )  # fmt: skip
    evict(small, small.vision, small.platform, rule=EvictionRule.DRAIN, lost_hours=8)
    report = preemptions(small.cluster, small.last(), small.operator)
    found = [(r.rule, r.evictions, r.lost, r.in_vain, r.lost_in_vain) for r in report.rules]
    assert found == [("reclaim: rounded to whole gangs", 3, 7, 2, 6), ("drain", 1, 8, 0, 0)]
    assert (report.in_vain, report.lost_in_vain, report.in_vain_share) == (2, 6, 0.5)


@pytest.mark.django_db
def test_what_left_for_work_that_was_called_off_did_not_leave_in_vain(small: Small) -> None:
    evict(small, small.vision, small.platform, in_vain="gone")
    assert preemptions(small.cluster, small.last(), small.operator).in_vain == 0


@pytest.mark.django_db
def test_victims_of_one_request_share_what_it_asked_for(small: Small) -> None:
    cycle = Cycle.objects.create(cluster=small.cluster, number=1, at=END - HOUR)
    winner = make_workload(small.platform)
    for _ in range(2):
        evict(
            small, small.vision, small.platform, gpus=6, asked=8, cycle=cycle, for_workload=winner
        )
    evict(small, small.vision, small.platform, gpus=4, asked=8)
    report = preemptions(small.cluster, small.last(), small.operator)
    assert report.asked_ratio == pytest.approx(1.0)
    assert report.asked_worst == pytest.approx(1.5)


@pytest.mark.django_db
def test_evictions_are_counted_by_day_and_rule(small: Small) -> None:
    evict(small, small.vision, small.platform, at=END - 50 * HOUR)
    evict(small, small.vision, rule=EvictionRule.STALE_GANG)
    report = preemptions(small.cluster, small.last(72), small.operator)
    assert report.by_rule["reclaim"] == (0, 1, 0, 0)
    assert report.by_rule["stale_gang"] == (0, 0, 0, 1)
    assert sum(map(sum, report.by_rule.values())) == report.count


@pytest.mark.django_db
def test_matrix_holds_reclaims_and_preemptions_only(small: Small) -> None:
    evict(small, small.vision, small.platform)
    evict(small, small.vision, small.vision, rule=EvictionRule.PREEMPT)
    evict(small, small.speech, rule=EvictionRule.STALE_GANG)
    matrix = preemptions(small.cluster, small.last(), small.operator).matrix
    assert matrix.names == ("vision", "platform")
    assert matrix.counts == ((1, 1), (0, 0))
    assert (matrix.reclaims, matrix.preempts, matrix.total) == (1, 1, 2)
    assert (matrix.row_sums, matrix.column_sums) == ((2, 0), (1, 1))


@pytest.mark.django_db
def test_asker_that_the_lead_may_not_see_has_no_name(small: Small) -> None:
    evict(small, small.vision, small.platform)
    evict(small, small.platform, small.vision)
    report = preemptions(small.cluster, small.last(), small.lead)
    assert report.count == 1
    assert report.matrix.names == ("vision", OUTSIDE)
    assert "platform" not in str(report.as_dict())


@pytest.mark.django_db
def test_many_queues_are_folded_into_one_line(small: Small) -> None:
    for i in range(12):
        queue = Queue.objects.create(cluster=small.cluster, parent=small.research, name=f"q{i}")
        evict(small, queue, small.vision)
    matrix = preemptions(small.cluster, small.last(), small.operator).matrix
    assert len(matrix.names) == 8
    assert matrix.names[-1] == "(others)"
    assert matrix.total == 12


@pytest.mark.django_db
def test_losses_by_queue_come_most_first_and_sum_to_all(small: Small) -> None:
    evict(small, small.speech, small.platform, lost_hours=1)
    evict(small, small.vision, small.platform, lost_hours=3)
    report = preemptions(small.cluster, small.last(), small.operator)
    assert [(q.name, q.share) for q in report.queues] == [("vision", 0.75), ("speech", 0.25)]


@pytest.mark.django_db
def test_range_without_evictions_is_empty(small: Small) -> None:
    report = preemptions(small.cluster, small.last(), small.operator)
    assert report.is_empty
    assert report.asked_ratio is None
    assert report.lost_share is None


@pytest.mark.django_db
@pytest.mark.parametrize("count", [1, 3])
def test_queries_do_not_grow_with_the_evictions(
    small: Small, count: int, django_assert_num_queries: object
) -> None:
    small.sample(small.root, small.h100, installed=16, ready=16)
    for _ in range(count):
        evict(small, small.vision, small.platform)
    with django_assert_num_queries(8):  # type: ignore[operator]
        preemptions(small.cluster, small.last(), small.operator)
