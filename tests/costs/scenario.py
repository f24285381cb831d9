"""The example organisation with as much waiting as asked for, and half as much that has ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from scheduling.engine import model as m
from scheduling.models import (
    Cluster,
    ForecastOutcome,
    Outcome,
    PriorityClass,
    StartForecast,
    State,
    Transition,
    Workload,
)
from tests.factories import NOW, example_cluster

LATE_EVERY = 10
"""One in so many forecasts of what has ended came true too late, and is to be settled."""


def busy_cluster(pending: int) -> Cluster:
    """``pending`` workloads wait, each with a forecast; half as many have run and ended."""
    cluster = example_cluster()
    rows = Workload.objects.bulk_create(
        [*_waiting(cluster, pending), *_ended(cluster, pending // 2)]
    )
    Transition.objects.bulk_create(
        Transition(workload=row, at=row.submitted_at, to_state=State.PENDING) for row in rows
    )
    Transition.objects.bulk_create(
        Transition(
            workload=row, at=row.finished_at, from_state=State.RUNNING, to_state=State.FINISHED
        )
        for row in rows[pending:]
    )
    StartForecast.objects.bulk_create(
        StartForecast(
            workload=row, at=NOW, p50_at=NOW + timedelta(hours=1), p90_at=NOW + timedelta(hours=4)
        )
        for row in rows[:pending]
    )
    ForecastOutcome.objects.bulk_create(_told(rows))
    return cluster


def _told(rows: list[Workload]) -> Iterator[ForecastOutcome]:
    for i, row in enumerate(rows):
        p90_s = 60.0 if i % LATE_EVERY == 0 else 1e6
        yield ForecastOutcome(
            workload=row, at_submission=True, told_at=row.submitted_at, p50_s=30.0, p90_s=p90_s,
            raw_p50_s=30.0, raw_p90_s=p90_s, gpus=row.requested_gpus,
        )  # fmt: skip


def _waiting(cluster: Cluster, count: int) -> Iterator[Workload]:
    for i, row in enumerate(_rows(cluster, "more-wait", count)):
        row.submitted_at = NOW - timedelta(minutes=2 + i % 600)
        row.reason, row.position = "above_fair_share", i + 1
        yield row


def _ended(cluster: Cluster, count: int) -> Iterator[Workload]:
    for i, row in enumerate(_rows(cluster, "more-ended", count)):
        row.submitted_at = NOW - timedelta(hours=30, minutes=i % 600)
        row.admitted_at = row.started_at = row.submitted_at + timedelta(minutes=10)
        row.first_started_at = row.started_at
        row.finished_at = row.submitted_at + timedelta(hours=2)
        row.state, row.outcome = State.FINISHED, Outcome.SUCCEEDED
        row.members, row.gpu_class = 1, cluster.gpu_classes.get(name=row.gpu_classes[0])
        yield row


def _rows(
    cluster: Cluster, name: str, count: int, submitted_at: datetime | None = None
) -> Iterator[Workload]:
    queues = list(cluster.queues.exclude(parent=None).filter(children=None).order_by("path"))
    priority = PriorityClass.objects.filter(name="research-normal").first()
    for i in range(count):
        queue = queues[i % len(queues)]
        yield Workload(
            cluster=cluster, queue=queue, uid=f"{name}-{i}", name=f"{name}-{i}",
            namespace=queue.namespace or queue.name, queue_label=queue.name, user="m.okafor",
            priority_class=priority, gpu_classes=["h100-80gb"], min_members=1, max_members=1,
            gpus=1000, state=State.PENDING, submitted_at=submitted_at,
        )  # fmt: skip


def change(cluster: Cluster, count: int, now: datetime) -> None:
    """``count`` that waited have run and ended by ``now``, and as many others have come."""
    waited = list(cluster.workloads.filter(name__startswith="more-wait").order_by("pk")[:count])
    gpu_class = cluster.gpu_classes.get(name="h100-80gb")
    for row in waited:
        row.admitted_at = row.started_at = row.first_started_at = now - timedelta(seconds=50)
        row.finished_at, row.state, row.outcome = now, State.FINISHED, Outcome.SUCCEEDED
        row.members, row.gpu_class = 1, gpu_class
    columns = ("admitted_at", "started_at", "first_started_at", "finished_at", "state", "outcome",
               "members", "gpu_class")  # fmt: skip
    Workload.objects.bulk_update(waited, columns)
    fresh = Workload.objects.bulk_create(_rows(cluster, "change", count, submitted_at=now))
    Transition.objects.bulk_create(
        Transition(workload=row, at=now, to_state=row.state) for row in (*waited, *fresh)
    )
    told = (
        ForecastOutcome(
            workload=row, at_submission=True, told_at=now, p50_s=30.0, p90_s=60.0,
            raw_p50_s=30.0, raw_p90_s=60.0, gpus=row.requested_gpus,
        )
        for row in fresh
    )  # fmt: skip
    ForecastOutcome.objects.bulk_create(told)


def snapshot_of(pending: int) -> m.Snapshot:
    """The same in the engine's words: four queues, eight nodes, ``pending`` that ask for 1 to 8 GPUs."""
    quota = {"gpu": m.Quota(nominal=16 * m.MILLI)}
    return m.Snapshot(
        now=NOW,
        gpu_classes=(m.GpuClass("gpu"),),
        nodes=tuple(m.Node(f"n{i}", "gpu", 8 * m.MILLI) for i in range(8)),
        queues=tuple(m.Queue(f"q{i}", quotas=quota) for i in range(4)),
        priority_classes=(m.PriorityClass("normal", 50),),
        workloads=tuple(
            m.Workload(
                f"w{i}", f"q{i % 4}", "normal", NOW - timedelta(seconds=i), 2 ** (i % 4) * m.MILLI,
                gpu_classes=("gpu",),
            )
            for i in range(pending)
        ),
    )  # fmt: skip
