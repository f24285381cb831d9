"""A whole trace under one policy on a pooled or a divided cluster, and its figures."""

from __future__ import annotations

from scheduling.simulation.traces import Trace
from workshop.rivals.costs import USUAL, Costs
from workshop.rivals.registry import RULES, replay_rule
from workshop.simulator.partition import static_nodes
from workshop.simulator.replay import SHIPPED, EngineRun, replay_engine
from workshop.simulator.result import Metrics, Replay, metrics

WEIR = "weir"
POLICIES = (WEIR, *RULES)
BASELINE = "fifo-skip"


def replay(
    trace: Trace, policy: str, nodes: int | None, run: EngineRun = SHIPPED, costs: Costs = USUAL
) -> Replay:
    """``nodes`` pooled nodes, or None: each queue alone on its static part.

    ``policy`` is one of POLICIES; ``run`` concerns the shipped engine alone, ``costs`` the rivals. Raises
    TooLargeError; ValueError when a job never ends.
    """
    if policy == WEIR:
        return replay_engine(trace, nodes, run)
    return replay_rule(trace, RULES[policy], static_nodes(trace) if nodes is None else nodes, costs)


def measure(trace: Trace, result: Replay, warm_up_s: int = 0) -> Metrics:
    """Figures with the fairness baseline: each queue alone on its static part, FIFO that may skip.

    Jobs submitted in the first ``warm_up_s`` seconds do not count: a cluster begins empty. Raises ValueError
    when none is left.
    """
    counted = result.submit_s >= warm_up_s
    return metrics(result.take(counted), replay(trace, BASELINE, None).take(counted))
