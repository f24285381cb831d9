"""A whole trace under one policy on a pooled or a divided cluster, and its figures."""

from __future__ import annotations

from scheduling.simulation.partition import static_nodes
from scheduling.simulation.result import Metrics, Replay, metrics
from scheduling.simulation.rivals import Rival, replay_pooled, replay_static
from scheduling.simulation.traces import Trace


def replay(trace: Trace, rival: Rival, nodes: int | None) -> Replay:
    """``nodes`` pooled nodes, or None: each queue alone on its static part. Raises TooLargeError."""
    if nodes is None:
        return replay_static(trace, rival, static_nodes(trace))
    return replay_pooled(trace, rival, nodes)


def measure(trace: Trace, result: Replay) -> Metrics:
    """Figures with the fairness baseline: each queue alone on its static part, FIFO that may skip."""
    return metrics(result, replay(trace, Rival.FIFO_SKIP, None))
