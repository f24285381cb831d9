"""Policies of sharing on a recorded trace, as means of several lives.

One life is chaotic: a few seconds more of one run move averages by per cents. Life 0 is the trace itself, the
others add 1 to 5 s to one run time in a hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from scheduling.engine.model import Policy, Sharing
from scheduling.simulation.traces import Trace
from workshop.compare.replays import replay
from workshop.rivals.queues import Rival
from workshop.simulator.replay import EngineRun
from workshop.simulator.result import Flags, Metrics, Replay, metrics

LIVES = 5
JITTERED, MOST_JITTER_S = 0.01, 5
JUDGED_FROM = datetime(2017, 11, 1, tzinfo=UTC)
"""Parameters were chosen on what was submitted before."""
SHARINGS: Mapping[Sharing, Sequence[str]] = {
    Sharing.FAIR_SHARE: ("fair_share_",),
    Sharing.PROMISE: ("promise_", ""),
    Sharing.THROUGHPUT: ("throughput_",),
}
"""What stands before the names of their figures; nothing of what a new cluster gets."""


@dataclass(frozen=True, slots=True)
class SharingLife:
    """One life under a policy, and the same jobs each alone in the static part of its queue."""

    result: Replay
    alone: Replay

    def figures(self, chosen: Flags | None = None) -> Metrics:
        """Of all jobs, or of those ``chosen``."""
        if chosen is None:
            return metrics(self.result, self.alone)
        return metrics(self.result.take(chosen), self.alone.take(chosen))


def lives(trace: Trace, count: int = LIVES) -> Iterator[Trace]:
    """The trace, then jittered ones."""
    for seed in range(count):
        yield trace if seed == 0 else jittered(trace, seed)


def jittered(trace: Trace, seed: int) -> Trace:
    dice = np.random.default_rng(seed)
    longer = dice.random(len(trace)) < JITTERED
    duration_s = trace.duration_s.copy()
    duration_s[longer] += dice.integers(1, MOST_JITTER_S + 1, int(longer.sum()))
    return replace(trace, duration_s=duration_s)


def live_all(
    trace: Trace, sharing: Sharing, nodes: int, count: int, tell: Callable[[str], None]
) -> list[SharingLife]:
    """The lives on ``nodes`` pooled nodes."""
    run = EngineRun(policy=Policy(sharing=sharing))
    lived = []
    for number, each in enumerate(lives(trace, count)):
        tell(f"{sharing}, {nodes} nodes, life {number}")
        alone = replay(each, Rival.FIFO_SKIP, None)
        lived.append(SharingLife(run.replay(each, nodes), alone))
    return lived


def mean(values: Sequence[float | int | None]) -> float:
    return float(np.mean([float(value or 0.0) for value in values]))


def wait_figures(lived: Sequence[SharingLife], prefix: str) -> dict[str, float]:
    """Means over the lives; ``trace_`` is the first of them."""
    every = [life.figures() for life in lived]
    return {
        f"{prefix}avg_wait_s": round(mean([m.avg_wait_s for m in every]), 2),
        f"{prefix}p99_wait_s": round(mean([m.p99_wait_s for m in every]), 2),
        f"{prefix}avg_jct_s": round(mean([m.avg_jct_s for m in every]), 2),
    }


def fairness_figures(found: Sequence[Metrics], prefix: str = "") -> dict[str, float]:
    """Means of ``found``; of what no job should pass, the most."""
    return {
        f"{prefix}worst_vc_ratio": round(mean([m.fairness.worst_queue_ratio for m in found]), 3),
        f"{prefix}unfair_pct": round(mean([m.fairness.unfair_pct for m in found]), 3),
        f"{prefix}jain": round(mean([m.fairness.jain for m in found]), 4),
        f"{prefix}evictions_per_job": round(mean([m.evictions_per_job for m in found]), 4),
        f"{prefix}lost_gpu_hours_pct": round(mean([m.lost_gpu_hours_pct for m in found]), 4),
        f"{prefix}max_evictions_of_a_job": float(max(m.max_evictions_of_a_job for m in found)),
        f"{prefix}avg_wait_s": round(mean([m.avg_wait_s for m in found]), 2),
        f"{prefix}p99_wait_s": round(mean([m.p99_wait_s for m in found]), 2),
    }


def months(lived: Sequence[SharingLife], trace: Trace, prefix: str = "") -> dict[str, float]:
    """The figures of what was submitted before and since ``JUDGED_FROM``, apart."""
    later = trace.submit_s >= (JUDGED_FROM - trace.origin).total_seconds()
    return {
        **fairness_figures([life.figures(~later) for life in lived], f"{prefix}chosen_on_"),
        **fairness_figures([life.figures(later) for life in lived], f"{prefix}judged_on_"),
    }
