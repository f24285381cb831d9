"""The example organisation with a past to learn from, forecasts, their outcomes, and a question."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import numpy as np

from scheduling.engine import model as m
from scheduling.models import Cluster, ForecastOutcome, Queue, State, Study, Workload
from scheduling.models.workloads import HOLDING, WAITING
from scheduling.services.queues import rows as policy
from scheduling.services.snapshot import build as snapshots
from scheduling.services.starts import refresh
from scheduling.services.starts.futures import look_ahead
from scheduling.services.starts.history import known_of
from scheduling.services.studies import running, what_if
from tests.factories import NOW

PAST_RUNS = 240
QUESTION = [
    {"kind": "capacity", "gpu_class": "h100-80gb", "nodes": 2},
    {"kind": "quota", "queue": "speech", "gpu_class": "h100-80gb", "nominal_gpus": 4},
]


def live_of(cluster: Cluster) -> m.Snapshot:
    """What the rows say, as the engine's input: no API server stands behind the example."""
    rows = policy.load(cluster, at=cluster.now())
    nodes = cluster.nodes.select_related("gpu_class")
    return m.Snapshot(
        now=cluster.now(),
        gpu_classes=tuple(m.GpuClass(c.name, float(c.exchange_rate)) for c in rows.gpu_classes),
        nodes=tuple(m.Node(n.name, n.gpu_class.name, n.gpus, ready=n.ready) for n in nodes),
        queues=policy.engine_queues(rows),
        priority_classes=tuple(policy.engine_priority_classes(rows)),
        workloads=tuple(_works(cluster)),
        policy=policy.engine_policy(rows),
    )


def _works(cluster: Cluster) -> Iterable[m.Workload]:
    open_ = Workload.objects.filter(cluster=cluster, state__in=(*WAITING, *HOLDING))
    for row in open_.select_related("queue", "priority_class", "gpu_class"):
        held = {}
        if row.state in HOLDING:
            held = {
                "phase": m.Phase.RUNNING,
                "started": row.started_at,
                "gpu_class": row.gpu_class.name if row.gpu_class else None,
                "placement": row.placement,
            }
        yield m.Workload(
            name=f"{row.namespace}/{row.name}",
            queue=row.queue.name if row.queue else "",
            user=row.user,
            priority_class=row.priority_class.name if row.priority_class else "",
            submitted=row.submitted_at,
            gpus=row.gpus,
            members=m.Members(row.min_members, row.max_members),
            elastic=row.elastic,
            gpu_classes=tuple(row.gpu_classes),
            held=row.held,
            **held,
        )


def with_past(cluster: Cluster) -> None:
    """Three weeks in which work like that of today came, ran and ended."""
    dice = np.random.default_rng(7)
    leaves = [q for q in Queue.objects.filter(cluster=cluster) if q.namespace]
    rows = []
    for number in range(PAST_RUNS):
        queue = leaves[number % len(leaves)]
        at = NOW - timedelta(hours=float(dice.uniform(30, 21 * 24)))
        wait_s, run_s = float(dice.exponential(2400)), float(dice.lognormal(9.2, 0.9))
        start, gpus = at + timedelta(seconds=wait_s), int(dice.choice([1, 2, 4, 8]))
        rows.append(
            Workload(
                cluster=cluster,
                uid=f"past-{number}",
                name=f"run-{number}",
                namespace=queue.namespace,
                queue=queue,
                queue_label=queue.name,
                user="m.okafor",
                priority_class=None,
                gpus=gpus * 1000,
                gpu_classes=["h100-80gb"],
                state=State.FINISHED,
                outcome="succeeded",
                submitted_at=at,
                first_started_at=start,
                started_at=start,
                finished_at=start + timedelta(seconds=run_s),
                used_gpu_s=run_s * gpus,
            )
        )
    Workload.objects.bulk_create(rows)
    _outcomes(cluster, dice)


def _outcomes(cluster: Cluster, dice: np.random.Generator) -> None:
    """Forecasts of that past, right on the whole."""
    h100 = cluster.gpu_classes.get(name="h100-80gb")
    told = []
    for row in Workload.objects.filter(cluster=cluster, uid__startswith="past-"):
        came_s = max(120.0, (row.first_started_at - row.submitted_at).total_seconds())
        p50_s = came_s * float(np.exp(dice.normal(0, 0.5)))
        p90_s = p50_s * 1.9
        told.append(
            ForecastOutcome(
                workload=row,
                at_submission=True,
                told_at=row.submitted_at,
                p50_s=p50_s,
                p90_s=p90_s,
                raw_p50_s=p50_s,
                raw_p90_s=p90_s,
                naive_s=1700,
                gpu_class=h100,
                gpus=row.gpus,
                started_at=row.submitted_at + timedelta(seconds=came_s),
                cause="runs_longer" if came_s > p90_s else "",
            )
        )
    ForecastOutcome.objects.bulk_create(told)


def forecast(cluster: Cluster, futures: int = 12) -> None:
    """One pass of forecasts."""
    snapshot = live_of(cluster)
    known = known_of(cluster, snapshot.now)
    ahead = look_ahead(snapshot, known, futures=futures)
    refresh.keep(cluster, snapshot, known, ahead, began_at=NOW, cpu_s=0.9)


def asked(cluster: Cluster, monkeypatch) -> Study:
    """A question and its answer."""
    monkeypatch.setattr(snapshots, "live", live_of)
    question = what_if.ask(cluster=cluster, document=QUESTION, author="admin", days=7)
    running.work(question.pk)
    question.refresh_from_db()
    return question
