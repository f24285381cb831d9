"""Who held what over time: minutes, hours, days, and what is dropped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduling.models import Cluster, Cycle, Decision, Share, UsageSample, Workload
from scheduling.services.cycle.record import booking as module
from scheduling.services.cycle.record.booking import Ledger, minutes_between, usage_at
from scheduling.services.ledger.retention import retain
from scheduling.services.ledger.rollup import roll_up
from scheduling.services.queues import rows as policies
from tests.scheduling.kube import policy

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


@pytest.fixture
def cluster(db: None) -> Cluster:
    """A root of 16 GPUs, of which ``research`` holds 8. The clock stands at 10:00."""
    cluster = policy("enforce", "http://127.0.0.1:1", "research")
    gpu_class = cluster.gpu_classes.get()
    for queue in cluster.queues.all():
        root = queue.is_root
        Share.objects.create(
            queue=queue, gpu_class=gpu_class, allocated=8000, pending=2000,
            nominal=16000, fair_share=16000.0 if root else 12000.0,
        )  # fmt: skip
    cluster.clock_real = datetime.now(UTC)
    cluster.clock_start, cluster.clock_speed = T0 + timedelta(hours=2), 0
    cluster.save()
    return cluster


def book(ledger: Ledger, *moments: float) -> None:
    for moment in moments:
        ledger.book(policies.load(ledger.cluster, at=at(moment)), (), now=at(moment))


def hold(gpus: int) -> None:
    Share.objects.update(allocated=gpus * 1000)


def samples(resolution: str = "minute", queue: str = "research") -> list[UsageSample]:
    return list(
        UsageSample.objects.filter(resolution=resolution, queue__name=queue).order_by("start")
    )


def test_span_is_split_at_minutes() -> None:
    assert list(minutes_between(at(50), at(130))) == [(at(0), 10), (at(60), 60), (at(120), 10)]


def test_minute_holds_the_time_weighted_mean(cluster: Cluster) -> None:
    ledger = Ledger(cluster)
    book(ledger, 0, 15)
    hold(4)
    book(ledger, 60)

    (minute,) = samples()
    assert (minute.seconds, minute.allocated_gpus) == (60, (8000 * 15 + 4000 * 45) / 60)
    assert (minute.nominal_gpus, minute.pending_gpus) == (16000, 2000)


def test_root_sample_carries_capacity(cluster: Cluster) -> None:
    book(Ledger(cluster), 0, 60)

    (root,) = samples(queue="root")
    assert (root.installed_gpus, root.ready_gpus) == (16000, 16000)
    assert samples()[0].installed_gpus == 0


def test_restarted_worker_goes_on_in_the_same_minute(cluster: Cluster) -> None:
    book(Ledger(cluster), 0, 20)
    hold(2)
    book(Ledger(cluster), 40, 60)

    (minute,) = samples()
    assert (minute.seconds, minute.allocated_gpus) == (40, 5000)


def test_many_open_minutes_are_written_now_and_then_and_once_they_are_over(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW", 0)
    ledger = Ledger(cluster)
    book(ledger, 0, 10, 20)
    assert {sample.seconds for sample in UsageSample.objects.all()} == {10}

    monkeypatch.setattr(module, "WRITTEN_EVERY_S", 0.0)
    book(ledger, 30)
    assert {sample.seconds for sample in UsageSample.objects.all()} == {30}

    monkeypatch.setattr(module, "WRITTEN_EVERY_S", 3600.0)
    book(ledger, 50)
    assert {sample.seconds for sample in UsageSample.objects.all()} == {30}
    book(ledger, 70)
    assert {sample.seconds for sample in UsageSample.objects.all()} == {60, 10}


def test_time_nobody_watched_is_left_out(cluster: Cluster) -> None:
    book(Ledger(cluster), 0, 30, 4000, 4020)

    assert sum(s.seconds for s in samples()) == 50


def test_usage_moves_to_what_is_held_by_half_a_half_life(cluster: Cluster) -> None:
    Cluster.objects.update(usage_half_life_s=3600)
    rows = policies.load(Cluster.objects.get(), at=T0)
    key = next((s.queue_id, s.gpu_class_id) for s in rows.shares if s.queue_id != rows.root.pk)

    assert usage_at(rows, since=T0, now=at(3600))[key] == pytest.approx(0.25)
    assert usage_at(rows, since=T0, now=T0)[key] == 0


def test_roll_up_weighs_by_seconds_and_is_idempotent(cluster: Cluster) -> None:
    ledger = Ledger(cluster)
    book(ledger, 0, 60)
    hold(2)
    book(ledger, 90)

    assert roll_up(cluster) > 0
    (hour,) = samples("hour")
    assert (hour.start, hour.seconds) == (T0, 90)
    assert hour.allocated_gpus == (8000 * 60 + 2000 * 30) / 90
    assert samples("day")[0].seconds == 90
    assert roll_up(cluster) == 0


def test_hour_that_knows_more_than_its_minutes_stays(cluster: Cluster) -> None:
    queue, gpu_class = cluster.queues.get(name="research"), cluster.gpu_classes.get()
    UsageSample.objects.create(
        queue=queue, gpu_class=gpu_class, resolution="hour", start=T0, seconds=3000,
        allocated_gpus=1000,
    )  # fmt: skip
    book(Ledger(cluster), 0, 60)
    roll_up(cluster)

    assert samples("hour")[0].allocated_gpus == 1000


def test_retention_drops_minutes_after_two_days_and_waits_after_thirty(cluster: Cluster) -> None:
    queue, gpu_class = cluster.queues.get(name="research"), cluster.gpu_classes.get()
    for days in (1, 3):
        UsageSample.objects.create(
            queue=queue, gpu_class=gpu_class, resolution="minute", seconds=60,
            start=T0 - timedelta(days=days),
        )  # fmt: skip
    work = Workload.objects.create(
        cluster=cluster, uid="u", namespace="d", name="w", submitted_at=T0
    )
    for number, (action, days) in enumerate([("wait", 31), ("admit", 31), ("wait", 1)], start=1):
        cycle = Cycle.objects.create(cluster=cluster, number=number, at=T0 - timedelta(days=days))
        Decision.objects.create(cycle=cycle, workload=work, action=action, reason="x")

    assert retain(cluster) > 0
    assert [s.start for s in samples()] == [T0 - timedelta(days=1)]
    assert [c.number for c in Cycle.objects.order_by("number")] == [2, 3]
    assert retain(cluster) == 0
