"""What a process tells of itself in /metrics. docs/operations/run.md names every one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from celery.worker import state
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scheduling.services.worker import hearts, held
from scheduling.services.worker.spending import spent

Row = tuple[str, float]


class OfProcess(Collector):
    """The process in all its roles, what an engine holds of clusters, what a worker has done."""

    def collect(self) -> Iterator[Metric]:
        yield from _process()
        yield from _engine()
        yield from _tasks()


def _gauge(name: str, says: str, label: str, rows: Iterable[Row]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, says, labels=(label,))
    for key, value in rows:
        family.add_metric([key], value)
    return family


def _process() -> Iterator[Metric]:
    up = GaugeMetricFamily("weir_process_up", "The process, by role.", labels=("role", "host"))
    for role in hearts.roles():
        up.add_metric([role, socket.gethostname()], 1.0)
    yield up
    if found := spent(os.getpid()):
        says = "Of the process and what it started; of shared memory each its part."
        yield GaugeMetricFamily("weir_process_memory_bytes", says, value=found.memory)
        says = "Of the process and what it started."
        yield CounterMetricFamily("weir_process_cpu_seconds", says, value=found.cpu_s)


ENGINE: tuple[tuple[str, str, Callable[[dict[str, Any]], float]], ...] = (
    ("weir_engine_leads", "Whether the engine holds the lease.", lambda one: float(one["leads"])),
    ("weir_engine_lease_seconds", "Left of the lease.", lambda one: one["lease_s"]),
    ("weir_engine_mirror_lag_seconds", "Out of touch with the cluster.", lambda one: one["lag_s"]),
    ("weir_engine_mirror_objects", "Kept of the cluster.", lambda one: one["objects"]),
)  # fmt: skip


def _engine() -> Iterator[Metric]:
    told = held.told()
    for name, says, value in ENGINE:
        yield _gauge(name, says, "cluster", ((key, value(one)) for key, one in told.items()))
    says = "Since the cycle that runs began; 0 where none does."
    yield _gauge("weir_engine_cycle_running_seconds", says, "cluster", held.running_s().items())


def _tasks() -> Iterator[Metric]:
    """A parent of processes counts what they take as well."""
    counter = CounterMetricFamily("weir_worker_tasks", "Taken so far.", labels=("task",))
    for name, count in dict(state.total_count).items():
        counter.add_metric([name], float(count))
    yield counter
    yield GaugeMetricFamily("weir_worker_running_tasks", "Now.", value=len(state.active_requests))
