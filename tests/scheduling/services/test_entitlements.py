"""Quotas as the engine takes them: grace after lowering, GPU-hours of the month, what users held of late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from scheduling.engine import model as m
from scheduling.models import Cluster, Queue, Quota, Transition, UserUsage, Workload
from scheduling.services.queues import rows as policies
from scheduling.services.queues import user_usage
from scheduling.services.queues.entitlements import month
from tests.factories import make_workload
from tests.scheduling.kube import policy

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def cluster(db: None) -> Cluster:
    """One queue, ``research``, whose only quota row is of 8 GPUs, from before everything here."""
    cluster = policy("enforce", "http://127.0.0.1:1", "research")
    Quota.objects.all().delete()
    quota(cluster, 8, T0 - 100 * HOUR, None)
    return cluster


def quota(
    cluster: Cluster, gpus: int, start: datetime, end: datetime | None, **more: object
) -> Quota:
    return Quota.objects.create(
        queue=queue(cluster),
        gpu_class=cluster.gpu_classes.get(),
        nominal_gpus=1000 * gpus,
        effective_from=start,
        effective_until=end,
        **more,
    )


def queue(cluster: Cluster) -> Queue:
    return cluster.queues.get(name="research")


def changed(cluster: Cluster, gpus: int, at: datetime) -> None:
    """From ``at`` on the quota is another."""
    Quota.objects.filter(effective_until=None).update(effective_until=at)
    quota(cluster, gpus, at, None)


def taken(cluster: Cluster, at: datetime) -> m.Quota:
    (found,) = (q for q in policies.engine_queues(policies.load(cluster, at=at)))
    (entitlement,) = found.quotas.values()
    return entitlement


def test_lowered_quota_is_remembered_until_its_grace_ends(cluster: Cluster) -> None:
    changed(cluster, 2, T0)

    taken_now = taken(cluster, T0 + timedelta(minutes=30))

    assert taken_now.nominal == 2000
    assert taken_now.lowered == m.LoweredQuota(T0 + HOUR, nominal=8000)
    assert taken(cluster, T0 + HOUR).lowered is None


def test_raised_quota_needs_no_grace(cluster: Cluster) -> None:
    changed(cluster, 12, T0)

    assert taken(cluster, T0).lowered is None


def test_quota_lowered_twice_keeps_the_grace_of_the_higher(cluster: Cluster) -> None:
    changed(cluster, 6, T0)
    changed(cluster, 2, T0 + timedelta(minutes=20))

    assert taken(cluster, T0 + timedelta(minutes=30)).lowered == m.LoweredQuota(
        T0 + HOUR, nominal=8000
    )
    lowered = taken(cluster, T0 + timedelta(minutes=70)).lowered
    assert lowered == m.LoweredQuota(T0 + timedelta(minutes=80), nominal=6000)


def test_quota_that_ends_leaves_a_grace_too(cluster: Cluster) -> None:
    Quota.objects.update(effective_until=T0)

    assert taken(cluster, T0).nominal == 0
    assert taken(cluster, T0).lowered == m.LoweredQuota(T0 + HOUR, nominal=8000)


def test_lower_weight_is_a_lowering(cluster: Cluster) -> None:
    Quota.objects.update(effective_until=T0)
    quota(cluster, 8, T0, None, weight=Decimal("0.5"))

    lowered = taken(cluster, T0).lowered
    assert lowered is not None
    assert (lowered.weight, taken(cluster, T0).weight) == (1.0, 0.5)


def test_gpu_hours_of_the_month_are_what_work_held_up_to_the_last_minute(cluster: Cluster) -> None:
    """Eight GPUs since the last hour of last month but for one hour, then four in this minute."""
    Quota.objects.update(budget_gpu_hours=100)
    work = make_workload(
        queue(cluster), gpu_class=cluster.gpu_classes.get(), submitted_at=T0 - 200 * HOUR
    )
    began = datetime(2025, 12, 31, 23, tzinfo=UTC)
    for at, gpus in ((began, 8), (began + 3 * HOUR, 0), (T0 - HOUR, 4)):
        Transition.objects.create(
            workload=work, at=at, to_state="running", gpus=1000 * gpus,
            gpu_class=cluster.gpu_classes.get(),
        )  # fmt: skip

    got = taken(cluster, T0 + timedelta(seconds=90))

    assert got.budget_gpu_hours == 100
    assert got.used_gpu_hours == pytest.approx(2 * 8 + 4 * (1 + 1 / 60))
    assert got.period_ends == datetime(2026, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "ends"),
    [(datetime(2026, 12, 31, 23, 59), datetime(2027, 1, 1)), (datetime(2028, 2, 29), datetime(2028, 3, 1))],
)  # fmt: skip
def test_month_ends_where_the_next_begins(at: datetime, ends: datetime) -> None:
    assert month(at.replace(tzinfo=UTC))[1] == ends.replace(tzinfo=UTC)


def held_by(cluster: Cluster, **gpus: int) -> list[Workload]:
    return [
        Workload(queue=queue(cluster), user=user, gpus=1000 * n, members=1, state="running")
        for user, n in gpus.items()
    ]


def test_users_usage_nears_what_they_hold(cluster: Cluster) -> None:
    cluster.usage_half_life_s = 3600
    works, now = held_by(cluster, ann=4), T0
    for _ in range(60):
        user_usage.move_on(cluster, works, since=now, now=now + timedelta(minutes=1))
        now += timedelta(minutes=1)

    assert user_usage.at(cluster, now)[queue(cluster).pk, "ann"] == pytest.approx(2000)
    assert user_usage.at(cluster, now + HOUR)[queue(cluster).pk, "ann"] == pytest.approx(1000)


def test_users_usage_moves_on_once_a_minute(cluster: Cluster) -> None:
    works = held_by(cluster, ann=4)

    assert not user_usage.move_on(cluster, works, since=T0, now=T0 + timedelta(seconds=59))
    assert not UserUsage.objects.exists()


def test_users_who_held_nothing_for_long_are_forgotten(cluster: Cluster) -> None:
    UserUsage.objects.create(queue=queue(cluster), user="bob", gpus=1000, at=T0)
    later = T0 + timedelta(days=365)

    user_usage.move_on(cluster, [], since=later - HOUR, now=later)

    assert not UserUsage.objects.exists()


def test_snapshot_carries_limits_and_users(cluster: Cluster) -> None:
    Queue.objects.filter(name="research").update(
        max_running=9, max_running_per_user=3, max_gpus_per_user=4000
    )
    UserUsage.objects.create(queue=queue(cluster), user="bob", gpus=1500, at=T0)

    (found,) = policies.engine_queues(policies.load(cluster, at=T0))

    assert (found.max_running, found.max_running_per_user, found.max_gpus_per_user) == (9, 3, 4000)
    assert found.user_usage == {"bob": 1500}
