"""What a process answers to whoever looks after it: /livez, /readyz and /metrics.

The web server answers them on its own port, the others on ``WEIR_PROBE_PORT``. They are asked by address,
over plain HTTP, many times a minute: before hosts, TLS and sessions are looked at.
Every metric is named in docs/operations/run.md.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connections

from scheduling.engine.reasons.wording import span
from scheduling.services.worker import cluster_turns, hearts, looks
from scheduling.services.worker.looks import Look

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

import os
import socket
from collections.abc import Iterable, Iterator

from celery.worker import state
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scheduling.services.worker.spending import spent

log = logging.getLogger(__name__)

LIVE, READY, METRICS = "/livez", "/readyz", "/metrics"
PATHS = (LIVE, READY, METRICS)
TEXT = "text/plain; charset=utf-8"
REMEMBERED_S = 2.0
"""Strangers who ask all the time cost the database one look in so long."""
STUCK_S = 900.0
"""A cycle bounds every wait of its own; one that takes longer will not end."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    status: int
    body: bytes
    kind: str = TEXT


def answer(path: str, authorization: str, collectors: Sequence[Collector] = ()) -> ProbeAnswer:
    """Of one of ``PATHS``. ``collectors`` are told in /metrics beside what the process is."""
    try:
        if path == LIVE:
            return alive()
        if path == READY:
            return ready()
        return metrics(authorization, collectors)
    finally:
        # The thread is nobody's request, which would give connections back.
        connections.close_all()


def alive() -> ProbeAnswer:
    """Asks nothing outside of the process: a database that is away is no reason to start it again."""
    faults = [f"no heart beats any more in {role}" for role in hearts.stopped()]
    faults += [
        f"a cycle has run for {span(seconds)}"
        for seconds in cluster_turns.running_s().values()
        if seconds > STUCK_S
    ]
    return ProbeAnswer(503, "\n".join(faults).encode()) if faults else ProbeAnswer(200, b"ok\n")


def ready() -> ProbeAnswer:
    found = _looks.get()
    lines = [
        f"{'ok  ' if not one.fault else 'no  '}{one.name} {one.fault}".rstrip() for one in found
    ]
    is_ready = not any(one.fault for one in found if one.is_needed)
    return ProbeAnswer(200 if is_ready else 503, "\n".join([*lines, ""]).encode())


def metrics(authorization: str, collectors: Sequence[Collector]) -> ProbeAnswer:
    """For whoever has the token of ``WEIR_METRICS_TOKEN``; without one set there is no such page."""
    token = settings.WEIR_METRICS_TOKEN
    wanted = f"Bearer {token}".encode()
    if not token or not secrets.compare_digest(authorization.encode(), wanted):
        return ProbeAnswer(404, b"There is no such page.\n")
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    for collector in (OfProcess(), *collectors):
        registry.register(collector)
    return ProbeAnswer(200, generate_latest(registry), CONTENT_TYPE_LATEST)


class _RecentLooks:
    """The last looks, for a moment; of several who ask at once one looks and the others wait."""

    def __init__(self, look: Callable[[], list[Look]]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._found: list[Look] = []
        self._until_s = 0.0

    def get(self) -> list[Look]:
        with self._lock:
            if time.monotonic() >= self._until_s:
                self._found = self._look()
                self._until_s = time.monotonic() + REMEMBERED_S
            return self._found

    def forget(self) -> None:
        self._until_s = 0.0


_looks = _RecentLooks(looks.look)


class _Handler(BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        known = path in PATHS
        given = self.headers.get("Authorization", "")
        found = answer(path, given) if known else ProbeAnswer(404, b"There is no such page.\n")
        self.send_response(found.status)
        self.send_header("Content-Type", found.kind)
        self.send_header("Content-Length", str(len(found.body)))
        self.end_headers()
        self.wfile.write(found.body)

    def version_string(self) -> str:
        return "Weir"

    def log_message(self, format: str, *args: Any) -> None:
        """Probes come many times a minute."""


def listen(port: int, host: str = "") -> ThreadingHTTPServer:
    """Answer on ``port``, of every address unless ``host`` names one, until the process ends."""
    server = ThreadingHTTPServer((host, port), _Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="probes", daemon=True).start()
    return server


def listen_if_asked() -> None:
    """Once, when a worker or beat begins. A port that cannot be had is told, and probes fail."""
    if not settings.WEIR_PROBE_PORT:
        return
    try:
        listen(settings.WEIR_PROBE_PORT)
    except OSError as error:
        log.error("WEIR_PROBE_PORT %s cannot be had: %s", settings.WEIR_PROBE_PORT, error)


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
    turns = cluster_turns.as_json()
    for name, says, value in ENGINE:
        yield _gauge(name, says, "cluster", ((key, value(one)) for key, one in turns.items()))
    says = "Since the cycle that runs began; 0 where none does."
    yield _gauge(
        "weir_engine_cycle_running_seconds", says, "cluster", cluster_turns.running_s().items()
    )


def _tasks() -> Iterator[Metric]:
    """A parent of processes counts what they take as well."""
    counter = CounterMetricFamily("weir_worker_tasks", "Taken so far.", labels=("task",))
    for name, count in dict(state.total_count).items():
        counter.add_metric([name], float(count))
    yield counter
    yield GaugeMetricFamily("weir_worker_running_tasks", "Now.", value=len(state.active_requests))
