"""Weir's own metrics of all clusters, which web servers tell.

Read from the ledger when they are asked for, so every web process tells the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from django.db.models import Count, Sum
from django.utils import timezone
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from portal.alerts.models import Firing
from portal.notices.models import Letter, LetterState
from portal.streams.standing import standings as streams
from scheduling.models import (
    MILLI,
    Cluster,
    ClusterMode,
    Cycle,
    Eviction,
    IdleSpell,
    Lane,
    Role,
    Share,
    State,
    Workload,
)
from scheduling.services.worker.processes import standings

SHARES = ("allocated", "fair_share", "nominal", "pending")
Labels = tuple[str, ...]
Row = tuple[Labels, float]


class Weir(Collector):
    """All clusters as the ledger knows them now."""

    def collect(self) -> Iterator[Metric]:
        clusters = list(Cluster.objects.all())
        yield from _health(clusters)
        yield from _installation()
        yield from _work()
        yield from _gpus()
        yield _gauge(
            "weir_alerts_firing", "Alert rules that fire.", ("cluster", "figure", "queue"),
            (
                ((f.rule.cluster.name, f.rule.figure, f.rule.queue.path if f.rule.queue else ""), 1.0)
                for f in Firing.objects.filter(until=None).select_related("rule__cluster", "rule__queue")
            ),
        )  # fmt: skip
        yield from _streams()
        states = Letter.objects.filter(state__in=(LetterState.WAITING, LetterState.DEAD))
        counts = states.order_by().values_list("state").annotate(count=Count("pk"))
        yield _gauge(
            "weir_letters", "Mails and webhooks that wait or could not be delivered.", ("state",),
            (((state,), float(count)) for state, count in counts),
        )  # fmt: skip


def _gauge(name: str, says: str, labels: Labels, rows: Iterable[Row]) -> GaugeMetricFamily:
    """One for each set of labels: of several rows with the same the sum."""
    sums: dict[Labels, float] = {}
    for key, value in rows:
        sums[key] = sums.get(key, 0.0) + value
    family = GaugeMetricFamily(name, says, labels=labels)
    for key, value in sums.items():
        family.add_metric(list(key), value)
    return family


def _health(clusters: list[Cluster]) -> Iterator[Metric]:
    yield _gauge(
        "weir_cluster_enforced", "1 where Weir writes to the cluster.", ("cluster",),
        (((c.name,), float(c.mode == ClusterMode.ENFORCE)) for c in clusters),
    )  # fmt: skip
    now, last = timezone.now(), {}
    for cluster in clusters:
        last[cluster.name] = Cycle.objects.filter(cluster=cluster).first()
    ages = [(c.name, (now - c.planned_at).total_seconds()) for c in clusters if c.planned_at]
    yield _gauge(
        "weir_plan_age_seconds", "Since the last finished cycle.", ("cluster",),
        (((name,), age) for name, age in ages),
    )  # fmt: skip
    yield _gauge(
        "weir_cycle_seconds", "That the last kept cycle took.", ("cluster",),
        (((name,), cycle.took_ms / 1000) for name, cycle in last.items() if cycle),
    )  # fmt: skip
    yield _gauge(
        "weir_mirror_lag_seconds", "Age of the picture that the last kept cycle planned.", ("cluster",),
        (((name,), cycle.lag_s) for name, cycle in last.items() if cycle and cycle.lag_s is not None),
    )  # fmt: skip
    yield _gauge(
        "weir_measured_gpus", "GPUs in the last readings.", ("cluster",),
        (((c.name,), float(c.measured_gpus)) for c in clusters if c.metrics_url),
    )  # fmt: skip


def _installation() -> Iterator[Metric]:
    alive = Counter(one.process.role for one in standings() if one.alive)
    yield _gauge(
        "weir_processes", "That are heard of.", ("role",),
        (((role,), float(alive[role])) for role in Role.values),
    )  # fmt: skip
    now, lanes = timezone.now(), list(Lane.objects.all())
    yield _gauge(
        "weir_lane_waiting_tasks", "As the broker said last.", ("lane",),
        (((lane.name,), float(lane.waiting)) for lane in lanes if lane.waiting is not None),
    )  # fmt: skip
    yield _gauge(
        "weir_lane_silent_seconds", "Since a worker took a heartbeat out of the lane.", ("lane",),
        (((one.name,), (now - one.served_at).total_seconds()) for one in lanes if one.served_at),
    )  # fmt: skip


def _streams() -> Iterator[Metric]:
    now, rows = timezone.now(), streams(timezone.now())
    yield _gauge(
        "weir_stream_lag_seconds", "How long what waits could have gone out.", ("stream",),
        (((one.name,), one.lag_s) for one in rows),
    )  # fmt: skip
    yield _gauge(
        "weir_stream_failing_seconds", "Since a target takes nothing; 0 where it does.", ("stream",),
        (
            ((one.name,), (now - one.failing_since).total_seconds() if one.failing_since else 0.0)
            for one in rows
        ),
    )  # fmt: skip


def _work() -> Iterator[Metric]:
    live = Workload.objects.exclude(state=State.FINISHED).order_by()
    counts = live.values_list("cluster__name", "state").annotate(count=Count("pk"))
    yield _gauge(
        "weir_workloads", "That have not ended.", ("cluster", "state"),
        (((cluster, state), float(count)) for cluster, state, count in counts),
    )  # fmt: skip
    evicted = Eviction.objects.order_by().values_list("workload__cluster__name", "rule")
    family = CounterMetricFamily("weir_evictions", "So far.", labels=("cluster", "rule"))
    for cluster, rule, count in evicted.annotate(count=Count("pk")):
        family.add_metric([cluster, rule], float(count))
    yield family


def _gpus() -> Iterator[Metric]:
    rows = list(
        Share.objects.order_by().values_list(
            "queue__cluster__name", "queue__path", "queue__parent", "gpu_class__name", *SHARES
        )
    )
    yield _gauge(
        "weir_queue_gpus", "Of each queue: allocated, fair share, nominal, pending.",
        ("cluster", "queue", "gpu_class", "figure"),
        (
            ((cluster, path, name, figure), float(value) / MILLI)
            for cluster, path, parent, name, *values in rows
            if parent is not None
            for figure, value in zip(SHARES, values, strict=True)
        ),
    )  # fmt: skip
    of_root = [(row[0], row[3], row[5], row[6]) for row in rows if row[2] is None]
    yield _gauge(
        "weir_ready_gpus", "On nodes that take work.", ("cluster", "gpu_class"),
        (((cluster, name), float(ready) / MILLI) for cluster, name, ready, _ in of_root),
    )  # fmt: skip
    yield _gauge(
        "weir_installed_gpus", "On all nodes.", ("cluster", "gpu_class"),
        (((cluster, name), float(all_) / MILLI) for cluster, name, _, all_ in of_root),
    )  # fmt: skip
    idle = IdleSpell.objects.filter(until=None).order_by()
    gpus = idle.values_list("workload__cluster__name", "gpu_class__name").annotate(held=Sum("gpus"))
    yield _gauge(
        "weir_idle_gpus", "Held, and nothing runs on them.", ("cluster", "gpu_class"),
        (((cluster, name), gpus / MILLI) for cluster, name, gpus in gpus),
    )  # fmt: skip
