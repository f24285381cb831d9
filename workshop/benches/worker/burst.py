"""`python -m workshop.benches.worker.burst JOBS LATENCY_S HANGS_S FILE`: many Jobs at a slow API server.

The embedded API server answers a write to a Job after LATENCY_S, and the very first start after HANGS_S.
While the burst is written, probes for a queue with room come one by one. ``bench burst`` starts it, in a
process and with a database of its own, and reads what it wrote into FILE.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from workshop.benches.engine.outcomes import Outcome, Progress

from .managers import program
from .runner import JOBS, NAMESPACE, RESOURCE, manifest
from .work import Arrival, JobClass, Load

if TYPE_CHECKING:
    from scheduling.cluster.connection.client import Client
    from workshop.testbed.server import EmbeddedServer

BURST, LATENCY_S, HANGS_S = 200, 0.05, 5.0
PROBES, PROBE_EVERY_S = 10, 0.1
LIMIT_S = 120.0
KIND = JobClass("burst", units=1, runtime_s=3600, priority=50, every_s=0, count=1)
LOAD = Load(cohorts=2, queues=1, classes=(KIND,), nominal=BURST + PROBES)
MANY, OTHER = LOAD.queue_names

Json = dict[str, Any]


def bench_burst(_traces: Path, progress: Progress) -> Outcome:
    """A burst of Jobs that all have room, each write slow; then one where the first start hangs."""
    found: dict[str, float] = {}
    for name, hangs_s in (("slow", LATENCY_S), ("hung", HANGS_S)):
        progress(f"{BURST} Jobs, writes of {LATENCY_S * 1000:g} ms, the first of {hangs_s:g} s")
        figures = measured(BURST, LATENCY_S, hangs_s)
        found |= {f"{name}_{figure}": value for figure, value in figures.items()}
    return Outcome(
        measured=found,
        notes=[
            "slow: every write of a Job takes 50 ms; hung: that of the first start 5 s",
            "times from sending a Job's creation to its start in the store of the embedded API server, which"
            " shares the process with the program that creates the Jobs",
            "probes come one by one for a queue of their own while the burst is written",
        ],
    )


def measured(jobs: int, latency_s: float, hangs_s: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="weir-burst-") as folder:
        found = Path(folder) / "found.json"
        environment = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{folder}/weir.sqlite3",
            "WEIR_BROKER_URL": f"folder://{folder}/broker",
        }
        command = program("burst", str(jobs), str(latency_s), str(hangs_s), found)
        subprocess.run(command, env=environment, check=True)  # noqa: S603 - ourselves
        figures: dict[str, float] = json.loads(found.read_text())
        return figures


@dataclass
class Watcher:
    """When which Job was created and first let go, in seconds of one clock."""

    created: dict[str, float] = field(default_factory=dict)
    started: dict[str, float] = field(default_factory=dict)

    def look(self, job: Json) -> None:
        if not job["spec"]["suspend"]:
            self.started.setdefault(job["metadata"]["name"], time.monotonic())

    def waits_ms(self, names: Sequence[str]) -> list[float]:
        return [1000 * (self.started[name] - self.created[name]) for name in names]

    def await_all(self, names: Sequence[str]) -> None:
        until = time.monotonic() + LIMIT_S
        while not self.started.keys() >= set(names):
            if time.monotonic() > until:
                raise TimeoutError(f"{len(self.started)} of {len(names)} Jobs started")
            time.sleep(0.01)


def main(jobs: int, latency_s: float, hangs_s: float, found: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    found.write_text(json.dumps(_figures(jobs, latency_s, hangs_s)))


def _figures(jobs: int, latency_s: float, hangs_s: float) -> dict[str, float]:
    from scheduling.cluster.connection.client import Client
    from scheduling.models import Cycle
    from workshop.testbed.server import EmbeddedServer
    from workshop.testbed.server.kinds.resources import JOBS as JOB_RESOURCE

    with EmbeddedServer(port=0, startup_s=0.01) as server:
        client, watcher = Client.connect(_furnished(server)), Watcher()
        stop = server.store.watch(JOB_RESOURCE, lambda event: watcher.look(event.record.body))
        with workers():
            create(client, watcher, MANY, ["warm"])
            watcher.await_all(["warm"])
            _slow_down(server, latency_s, hangs_s)
            before = Cycle.objects.latest("number").number
            names, probes = _play(client, watcher, jobs)
            watcher.await_all([*names, *probes])
            plans = Cycle.objects.latest("number").number - before
        stop()
    return _summary(watcher, names, probes, plans)


@contextmanager
def workers() -> Iterator[None]:
    """Weir's, beside this process."""
    running = subprocess.Popen(program("worker"), stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
    try:
        assert running.stdout is not None  # noqa: S101 - it is a pipe
        running.stdout.readline()
        yield
    finally:
        running.terminate()
        running.wait()


def _summary(
    watcher: Watcher, names: Sequence[str], probes: Sequence[str], plans: int
) -> dict[str, float]:
    began = min(watcher.created[name] for name in names)
    waits, probed = watcher.waits_ms(names), watcher.waits_ms(probes)
    return {
        "makespan_s": round(max(watcher.started[name] for name in names) - began, 2),
        "p50_ms": round(median(waits)),
        "probe_p50_ms": round(median(probed)),
        "probe_max_ms": round(max(probed)),
        "plans": float(plans),
    }


def _play(client: Client, watcher: Watcher, jobs: int) -> tuple[list[str], list[str]]:
    """The burst as fast as it can be created, and the probes beside it."""
    names = [f"burst-{number}" for number in range(jobs)]
    probes = [f"probe-{number}" for number in range(PROBES)]
    burst = threading.Thread(target=create, args=(client, watcher, MANY, names))
    burst.start()
    for name in probes:
        time.sleep(PROBE_EVERY_S)
        create(client, watcher, OTHER, [name])
    burst.join()
    return names, probes


def create(client: Client, watcher: Watcher, queue: str, names: Sequence[str]) -> None:
    for name in names:
        watcher.created[name] = time.monotonic()
        client.create(JOBS, manifest(Arrival(0, name, queue, KIND)))


def _slow_down(server: EmbeddedServer, latency_s: float, hangs_s: float) -> None:
    """Writes to single Jobs; creating them takes no longer."""
    server.faults.configure(latency_s=latency_s, path="/jobs/", verbs=["PUT", "PATCH"])
    strike, lock, first = server.faults.strike, threading.Lock(), [hangs_s]

    def slow(method: str, path: str) -> float:
        with lock:
            hangs = first.pop() if first and method == "PUT" and "/jobs/" in path else 0.0
        return max(hangs, strike(method, path))

    server.faults.strike = slow  # type: ignore[method-assign] # no rule of its own strikes once


def _furnished(server: EmbeddedServer) -> Any:
    """The cluster of ``server`` with the namespace, nodes and queues of the load."""
    from scheduling.cluster.connection.client import Client
    from scheduling.models import Cluster

    from .policy import write_policy

    Cluster.objects.filter(pk=write_policy(LOAD, "").pk).update(api_url=server.url)
    cluster = Cluster.objects.get()
    client = Client.connect(cluster)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    client.create("/api/v1/namespaces", space)
    amounts = {RESOURCE: "8", "cpu": "96", "memory": "512Gi", "pods": "110"}
    for number in range(2 * LOAD.nominal // 8):
        name = f"node-{number}"
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        client.create("/api/v1/nodes", node)
    client.close()
    return cluster


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
