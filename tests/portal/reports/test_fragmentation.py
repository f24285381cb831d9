"""Fragmentation: free is kept back, usable and fragmented; means over the time that somebody looked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.reports.fragmentation import FragmentationReport, fragmentation
from portal.reports.words import fragmentation_finding
from scheduling.models import (
    Consolidation,
    ConsolidationState,
    EvictionRule,
    Node,
    Reason,
    Share,
    State,
    UsageSample,
)
from scheduling.models.ledger import Resolution
from scheduling.services.explain import fragmentation as looking
from scheduling.services.ledger.rollup import roll_up
from tests.factories import make_workload
from tests.portal.reports.conftest import END, HOUR, Small
from tests.portal.reports.test_longest import waits_for
from tests.portal.reports.test_preemptions import evict
from tests.portal.reports.test_waits import started

pytestmark = pytest.mark.django_db


def report(small: Small, hours: float = 24, **filters: object) -> FragmentationReport:
    return fragmentation(small.cluster, small.last(hours, **filters), small.operator)


def node(small: Small, name: str, free: int, *, gpus: int = 8, **fields: object) -> Node:
    return Node.objects.create(
        cluster=small.cluster, gpu_class=small.h100, name=name, gpus=gpus * 1000,
        allocated_gpus=(gpus - free) * 1000, **fields,
    )  # fmt: skip


def waits(small: Small, gpus: int, reason: str = Reason.FRAGMENTED) -> None:
    make_workload(small.vision, gpus=gpus * 1000, gpu_classes=["h100"], reason=reason)


def looked(small: Small, hours_ago: float, gpus: float | None, **fields: object) -> None:
    small.sample(
        small.root, small.h100, hours_ago=hours_ago, installed=16, ready=16,
        fragmented=gpus, **fields,
    )  # fmt: skip


def test_free_is_kept_back_usable_and_fragmented(small: Small) -> None:
    for name, free in (("a", 6), ("b", 3), ("c", 1)):
        node(small, name, free)
    node(small, "down", 8, ready=False)
    waits(small, 4)
    Share.objects.create(queue=small.research, gpu_class=small.h100, kept_back=1000)
    [row, _] = report(small).now
    assert (row.free, row.kept_back, row.usable, row.fragmented) == (10000, 1000, 3000, 6000)
    assert row.split == ((3000, 1), (2000, 1), (1000, 1))
    assert row.because == "3 + 2 + 1 on 3 nodes; what waits needs 4 GPUs on a node"


@pytest.mark.parametrize(
    ("free", "waiting", "running", "told"),
    [
        (0, 4, 0, "nothing is free"),
        (3, 0, 0, "nothing waits or runs that asks for one"),
        (4, 2, 0, "what waits needs 2 GPUs on a node, and whole ones fit"),
        (3, 0, 2, "1 on 1 node; what usually runs asks for 2 GPUs on a node"),
    ],
)
def test_why_free_gpus_are_of_use_or_not(
    small: Small, free: int, waiting: int, running: int, told: str
) -> None:
    node(small, "a", free)
    if waiting:
        waits(small, waiting)
    if running:
        make_workload(small.vision, gpus=running * 1000, state=State.RUNNING, gpu_classes=["h100"])
    assert report(small).now[0].because == told


def test_kept_back_is_at_most_what_is_free_and_whole(small: Small) -> None:
    node(small, "a", 3)
    waits(small, 4)
    Share.objects.create(queue=small.research, gpu_class=small.h100, kept_back=9000)
    row = report(small).now[0]
    assert (row.kept_back, row.usable, row.fragmented) == (0, 0, 3000)


def test_mean_is_over_the_time_that_somebody_looked(small: Small) -> None:
    looked(small, 1, 4)
    looked(small, 2, 1, seconds=1200)
    looked(small, 3, None)
    found = report(small)
    assert found.mean == pytest.approx((4 * 3600 + 1 * 1200) / 4800)
    assert found.hours == pytest.approx(4 + 1 / 3)
    assert found.share == pytest.approx((4 + 1 / 3) / (16 + 16 / 3))


def test_without_a_look_there_is_no_mean_and_no_zero(small: Small) -> None:
    looked(small, 1, None)
    found = report(small)
    assert found.mean is None
    assert found.share is None
    assert "On average" not in str(fragmentation_finding(found))


def test_slices_count_their_part_of_a_gpu(small: Small) -> None:
    looked(small, 1, 2)
    small.sample(small.root, small.mig, installed=14, ready=14, fragmented=7)
    assert report(small).mean == pytest.approx(3)


def test_period_before_is_told_only_where_it_was_looked_at(small: Small) -> None:
    looked(small, 1, 2)
    assert report(small, compare=True).mean_before is None
    looked(small, 48, 6)
    looked(small, 26, 6)
    assert report(small, compare=True).mean_before == pytest.approx(6)


def test_chosen_subtree_narrows_who_waited_not_the_nodes(small: Small) -> None:
    node(small, "a", 3)
    waits(small, 4)
    assert report(small, queue="platform").now[0].fragmented == 3000


def test_waiting_for_whole_room_is_told_with_its_part_of_all(small: Small) -> None:
    for reason, hours in ((Reason.FRAGMENTED, 3), (Reason.ABOVE_FAIR_SHARE, 1)):
        work = started(small.vision, small.h100, wait_s=hours * 3600)
        waits_for(work, work.submitted_at, reason)
    found = report(small)
    assert (found.waited_count, found.waited_hours) == (1, pytest.approx(3))
    assert found.waited_share == pytest.approx(0.75)


def test_moves_and_orders_of_the_range_are_told_with_what_they_lost(small: Small) -> None:
    evict(small, small.vision, rule=EvictionRule.CONSOLIDATE, lost_hours=2)
    evict(small, small.vision, small.platform)
    Consolidation.objects.create(
        cluster=small.cluster, gpu_class=small.h100, nodes=1, author="op", most_moves=3,
        asked_at=END - HOUR, state=ConsolidationState.DONE,
        moves=[{"moved": True, "lost_gpu_s": 3600}, {"moved": False, "lost_gpu_s": 7200}],
    )  # fmt: skip
    found = report(small)
    assert (found.moved, found.moved_lost) == (1, pytest.approx(2))
    (row,) = found.tables()[3].rows
    assert (row[4], row[-1]) == ("partly_done", 1.0)


def test_orders_are_not_told_to_who_reports_on_a_part(small: Small) -> None:
    Consolidation.objects.create(
        cluster=small.cluster, gpu_class=small.h100, nodes=1, author="op", most_moves=3,
        asked_at=END - HOUR,
    )  # fmt: skip
    assert len(report(small).orders) == 1
    assert fragmentation(small.cluster, small.last(), small.lead).orders == ()


def test_finding_counts_now_and_on_average(small: Small) -> None:
    node(small, "a", 6)
    node(small, "b", 3)
    waits(small, 4)
    looked(small, 1, 4)
    assert str(fragmentation_finding(report(small))).startswith(
        "5 of 9 free GPUs are of no use to what waits, or where nothing waits to what usually runs."
        " On average 4 were in these 24 hours"
    )


def test_queries_do_not_grow_with_nodes_or_work(small: Small) -> None:
    report(small, compare=True)  # a cluster's classes are read once an object
    counts = []
    for more in range(2):
        for i in range(3):
            node(small, f"n{more}-{i}", 3)
            waits(small, 4)
        with CaptureQueriesContext(connection) as seen:
            report(small, compare=True)
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 22


class TestBooking:
    """What a look writes into the minutes of the root."""

    @pytest.fixture
    def minutes(self, small: Small) -> Small:
        small.cluster.clock_real = datetime.now(UTC)
        small.cluster.clock_start, small.cluster.clock_speed = END, 0
        small.cluster.save()
        for ago in (0, 1, 10):
            UsageSample.objects.create(
                queue=small.root, gpu_class=small.h100, resolution=Resolution.MINUTE, seconds=60,
                start=END - timedelta(minutes=ago), ready_gpus=8000,
            )  # fmt: skip
        node(small, "a", 3)
        waits(small, 2)
        return small

    def test_stands_for_the_last_minutes_and_no_further(self, minutes: Small) -> None:
        assert looking.book(minutes.cluster) == 2
        seen = UsageSample.objects.order_by("start").values_list("fragmented_gpus", flat=True)
        assert list(seen) == [None, 1000.0, 1000.0]

    def test_minute_that_was_looked_at_keeps_its_figure(self, minutes: Small) -> None:
        looking.book(minutes.cluster)
        Node.objects.update(allocated_gpus=0)
        assert looking.book(minutes.cluster) == 0

    def test_rolls_up_over_the_minutes_that_were_looked_at(self, minutes: Small) -> None:
        looking.book(minutes.cluster)
        roll_up(minutes.cluster)
        hour = UsageSample.objects.get(resolution=Resolution.HOUR, start=END)
        assert hour.fragmented_gpus == 1000.0
