"""The world of a past period: what was in force and ready then, and what is told of the rest."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from scheduling.models import Cluster, GpuClass, Loan, Queue, Quota, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.studies.experiments import worlds
from tests.factories import NOW, example_cluster
from tests.foresight import live_of
from workshop.demo.organisation import H100, L4

pytestmark = pytest.mark.django_db
BEGIN, END = NOW - timedelta(days=8), NOW - timedelta(days=3)


@pytest.fixture
def cluster() -> Cluster:
    return example_cluster()


def wall(cluster: Cluster, at: datetime) -> datetime:
    return worlds.wall_of(cluster, at)


def told(cluster: Cluster):
    return worlds.of_period(cluster, live_of(cluster), BEGIN, END)


def nominal(world, queue: str, gpu_class: str = H100) -> float:
    return next(q for q in world.queues if q.name == queue).quotas[gpu_class].nominal / 1000


def raised(cluster: Cluster, queue: str, at, gpus: int) -> None:
    """From ``at`` on it is so much."""
    row = Quota.objects.get(queue__cluster=cluster, queue__name=queue, gpu_class__name=H100)
    Quota.objects.filter(pk=row.pk).update(effective_until=at)
    row.pk, row.nominal_gpus, row.effective_from = None, gpus * 1000, at
    row.save()


def sampled(cluster: Cluster, ready: float, installed: float = 128, gpu_class: str = H100) -> None:
    """Each hour of the period."""
    root = Queue.objects.get(cluster=cluster, parent=None)
    kind = GpuClass.objects.get(cluster=cluster, name=gpu_class)
    UsageSample.objects.filter(queue=root, gpu_class=kind).delete()
    hours = int((END - BEGIN).total_seconds() // 3600)
    UsageSample.objects.bulk_create(
        UsageSample(
            queue=root, gpu_class=kind, resolution=Resolution.HOUR, seconds=3600,
            start=BEGIN + timedelta(hours=hour), ready_gpus=ready * 1000, installed_gpus=installed * 1000,
        )
        for hour in range(hours)
    )  # fmt: skip


def ready(world, gpu_class: str = H100) -> float:
    mine = [node for node in world.nodes if node.gpu_class == gpu_class and node.ready]
    return sum(node.gpus for node in mine) / 1000


def test_quota_is_that_of_the_period_and_not_of_today(cluster: Cluster) -> None:
    before = nominal(live_of(cluster), "speech")
    raised(cluster, "speech", NOW - timedelta(days=1), 40)
    world, basis = told(cluster)
    assert nominal(live_of(cluster), "speech") == 40
    assert nominal(world, "speech") == before
    assert basis["quota_changes"] == 0


def test_change_of_quotas_within_the_period_is_counted_and_not_lived(cluster: Cluster) -> None:
    before = nominal(live_of(cluster), "speech")
    raised(cluster, "speech", BEGIN + timedelta(days=1), 40)
    world, basis = told(cluster)
    assert (nominal(world, "speech"), basis["quota_changes"]) == (before, 1)


def test_loan_that_was_in_force_then_moves_what_was_guaranteed(cluster: Cluster) -> None:
    lender, borrower = (Queue.objects.get(name=name) for name in ("speech", "vision"))
    before = nominal(live_of(cluster), "speech")
    Loan.objects.create(
        cluster=cluster, lender=lender, borrower=borrower, gpus=2000,
        gpu_class=GpuClass.objects.get(name=H100), starts_at=BEGIN - timedelta(days=1),
        ends_at=BEGIN + timedelta(days=1),
    )  # fmt: skip
    world, basis = told(cluster)
    assert (nominal(world, "speech"), basis["loans"]) == (before - 2, 1)
    assert nominal(live_of(cluster), "speech") == before


def test_work_and_usage_of_today_are_no_part_of_it(cluster: Cluster) -> None:
    world, _ = told(cluster)
    assert world.workloads == ()
    assert all(not queue.usage and not queue.user_usage for queue in world.queues)


@pytest.mark.parametrize(
    ("was", "lived"), [(128, 128), (120, 120), (117, 120), (112.9, 112), (144, 144), (60, 56)]
)
def test_as_many_whole_nodes_are_ready_as_come_nearest_to_what_was(
    cluster: Cluster, was: float, lived: float
) -> None:
    sampled(cluster, was)
    world, basis = told(cluster)
    assert ready(world) == lived
    assert basis["gpus"][H100] == {
        "ready": was, "installed": 128.0, "lived": float(lived), "known_pct": 100,
    }  # fmt: skip


def test_class_that_nobody_sampled_has_its_nodes_of_today(cluster: Cluster) -> None:
    UsageSample.objects.filter(queue__cluster=cluster).delete()
    world, basis = told(cluster)
    assert ready(world, L4) == ready(live_of(cluster), L4)
    assert basis["gpus"][L4]["ready"] is None


def test_setting_of_a_queue_is_that_of_then(cluster: Cluster) -> None:
    queue = Queue.objects.get(cluster=cluster, name="speech")
    queue.priority = 7
    queue.save()
    first, last = queue.history.earliest(), queue.history.latest()
    queue.history.filter(pk=first.pk).update(
        history_date=wall(cluster, BEGIN - timedelta(days=1)), priority=3
    )
    queue.history.filter(pk=last.pk).update(history_date=wall(cluster, NOW - timedelta(days=1)))
    world, _ = told(cluster)
    assert next(q for q in world.queues if q.name == "speech").priority == 3


@pytest.mark.parametrize(
    ("kept_since", "is_kept"), [(timedelta(days=9), True), (timedelta(days=5), False)]
)
def test_policy_is_that_of_then_where_it_is_kept(
    cluster: Cluster, kept_since: timedelta, is_kept: bool
) -> None:
    cluster.history.all().delete()
    cluster.history.model.objects.filter(id=cluster.pk).delete()
    cluster.order = "fewest_gpus"
    cluster.save()
    cluster.history.all().update(history_date=wall(cluster, NOW - kept_since))
    Cluster.objects.filter(pk=cluster.pk).update(order="arrival")
    cluster.refresh_from_db()
    world, basis = told(cluster)
    assert basis["policy_kept"] is is_kept
    assert world.policy.order == ("fewest_gpus" if is_kept else "arrival")


def test_real_time_of_a_clock_that_runs_faster(cluster: Cluster) -> None:
    cluster.clock_real, cluster.clock_start, cluster.clock_speed = NOW, NOW + timedelta(hours=1), 60
    assert worlds.wall_of(cluster, NOW + timedelta(hours=2)) == NOW + timedelta(minutes=1)


def test_lowered_quota_of_before_has_no_grace_in_it(cluster: Cluster) -> None:
    raised(cluster, "speech", BEGIN - timedelta(minutes=5), 1)
    world, _ = told(cluster)
    assert next(q for q in world.queues if q.name == "speech").quotas[H100].lowered is None
    assert replace(world, workloads=()) == world
