"""How a cluster is divided among the queues of a trace: static parts, or nominal quotas of a pool."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from scheduling.engine.model import MILLI
from scheduling.simulation.traces import Trace
from workshop.simulator.ties import TIGHT_NODES


def static_nodes(trace: Trace) -> dict[str, int]:
    """Nodes by queue when each has its own: what the published comparisons use for Philly, else what the
    trace names, else in proportion to GPU-seconds. Never less than the queue's largest job needs."""
    if set(trace.queues) == set(TIGHT_NODES):
        return dict(TIGHT_NODES)
    given: Mapping[str, int] = trace.queue_nodes or by_demand(trace)
    return {
        queue: max(given[queue], largest_job_nodes(trace, number))
        for number, queue in enumerate(trace.queues)
    }


def by_demand(trace: Trace) -> dict[str, int]:
    """The recorded machine's nodes (or as many as the mean load needs at 80 %) split by GPU-seconds."""
    nodes = trace.nodes or mean_load_nodes(trace)
    work = np.bincount(
        trace.queue, weights=trace.gpus * trace.duration_s, minlength=len(trace.queues)
    )
    return dict(zip(trace.queues, split_exactly(nodes, work.tolist()), strict=True))


def mean_load_nodes(trace: Trace) -> int:
    span_s = max(1, int(trace.submit_s.max()) if len(trace) else 1)
    return max(1, math.ceil(trace.gpu_seconds / span_s / trace.gpus_per_node / 0.8))


def largest_job_nodes(trace: Trace, queue: int) -> int:
    gpus = trace.gpus[trace.queue == queue]
    return math.ceil(int(gpus.max()) / trace.gpus_per_node) if len(gpus) else 0


def nominal_gpus(trace: Trace, nodes: int) -> dict[str, int]:
    """Nominal quota by queue (milli-GPU) on ``nodes`` pooled nodes: shares of the static partition."""
    static = static_nodes(trace)
    capacity = nodes * trace.gpus_per_node * MILLI
    shares = split_exactly(capacity, [float(static[queue]) for queue in trace.queues])
    return dict(zip(trace.queues, shares, strict=True))


def split_exactly(total: int, weights: list[float]) -> list[int]:
    """``total`` in proportion to ``weights`` as integers that sum to it (largest remainder)."""
    whole = sum(weights)
    if whole <= 0:
        return [0] * len(weights)
    exact = [total * weight / whole for weight in weights]
    shares = [math.floor(share) for share in exact]
    by_rest = sorted(range(len(weights)), key=lambda i: (shares[i] - exact[i], i))
    for i in by_rest[: total - sum(shares)]:
        shares[i] += 1
    return shares
