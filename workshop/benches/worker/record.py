"""What a played load left behind, and the figures of a benchmark in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .runner import Course
from .work import Load


@dataclass(frozen=True, slots=True)
class Cost:
    """What playing it took: CPU seconds of Weir's worker and of etcd and API server, the worker's
    largest resident memory, and the API server's writes by resource."""

    worker_cpu_s: float
    worker_peak_mib: float
    server_cpu_s: float
    writes: dict[str, int]


@dataclass(frozen=True, slots=True)
class Record:
    """The course of every Job, and what it cost."""

    courses: Sequence[Course]
    runner_cpu_s: float
    cost: Cost

    @classmethod
    def read(cls, path: Path, cost: Cost) -> Record:
        written: dict[str, Any] = json.loads(path.read_text())
        return cls([Course(**course) for course in written["courses"]], written["cpu_s"], cost)

    def of(self, kind: str) -> list[Course]:
        return [course for course in self.courses if course.kind == kind]


def throughput(record: Record, load: Load) -> dict[str, float]:
    """The names of ``kueue-*``. Use counts what is held, from admission to the end, as Kueue's own
    harness does; ``work_pct`` only the run times in it."""
    makespan_s = max(c.finished_s for c in record.courses) - min(
        c.created_s for c in record.courses
    )
    room = load.units * makespan_s
    gpu_s = sum(c.units * c.held_s for c in record.courses)
    waits = {k.name: [c.admitted_s - c.created_s for c in record.of(k.name)] for k in load.classes}
    return {
        "makespan_s": round(makespan_s, 2),
        "bound_s": round(load.bound_s, 2),
        "use_pct": round(100 * gpu_s / room, 2),
        "work_pct": round(100 * load.bound_s / makespan_s, 2),
        **{f"{name}_s": round(float(np.mean(took)), 3) for name, took in waits.items()},
        "jobs": len(record.courses),
        "evictions": sum(c.evictions for c in record.courses),
        **spent(record),
    }


def latency(record: Record, load: Load) -> dict[str, float]:
    """The names of ``live``: Job created to unsuspended, both as its creator sees them."""
    probe = load.awaited
    probes = record.of(probe)
    took_ms = [1000 * (c.admitted_s - c.created_s) for c in probes]
    others = [c for c in record.courses if c.kind != probe]
    waiting = [
        sum(0 < c.created_s < p.created_s and not 0 < c.admitted_s < p.created_s for c in others)
        for p in probes
    ]
    return {
        "p50_ms": round(float(np.percentile(took_ms, 50)), 1),
        "p99_ms": round(float(np.percentile(took_ms, 99)), 1),
        "max_ms": round(max(took_ms), 1),
        "probes": len(probes),
        "least_pending": min(waiting),
        **spent(record),
    }


def spent(record: Record) -> dict[str, float]:
    cost = record.cost
    return {
        "worker_cpu_s": round(cost.worker_cpu_s, 2),
        "worker_peak_mib": round(cost.worker_peak_mib, 1),
        "server_cpu_s": round(cost.server_cpu_s, 2),
        "runner_cpu_s": round(record.runner_cpu_s, 2),
        "api_writes": sum(cost.writes.values()),
        **{f"api_writes_{kind}": n for kind, n in sorted(cost.writes.items()) if n},
    }
