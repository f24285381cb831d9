"""A whole trace under one policy on a pooled or a divided cluster, and its figures."""

from __future__ import annotations

from scheduling.simulation.result import Metrics, Replay, metrics
from scheduling.simulation.rivals.queues import Rival, replay_pooled, replay_static
from scheduling.simulation.traces import Trace

from .partition import static_nodes
from .weir import SHIPPED, EngineRun, replay_engine

WEIR = "weir"
POLICIES = (WEIR, *(str(rival) for rival in Rival))


def replay(trace: Trace, policy: str, nodes: int | None, run: EngineRun = SHIPPED) -> Replay:
    """``nodes`` pooled nodes, or None: each queue alone on its static part.

    ``policy`` is one of POLICIES; ``run`` concerns the shipped engine alone. Raises TooLargeError.
    """
    if policy == WEIR:
        return replay_engine(trace, nodes, run)
    if nodes is None:
        return replay_static(trace, Rival(policy), static_nodes(trace))
    return replay_pooled(trace, Rival(policy), nodes)


def measure(trace: Trace, result: Replay) -> Metrics:
    """Figures with the fairness baseline: each queue alone on its static part, FIFO that may skip."""
    return metrics(result, replay(trace, Rival.FIFO_SKIP, None))
