"""Lives of a window under an order, and whether one order is better than another on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from scheduling.engine.model import Policy, Sharing
from scheduling.simulation.replay.replays import BASELINE, replay
from scheduling.simulation.replay.sharing_lives import LIVES, Lived, lives, mean
from scheduling.simulation.replay.weir import EngineRun
from scheduling.simulation.replications import Difference, Verdict, compare
from scheduling.simulation.result import Metrics

from .windows import Window

BOUNDS: Mapping[str, float] = {
    "unfair_pct": 0.8,
    "worst_queue_ratio": 1.05,
    "evictions_per_job": 0.05,
    "lost_gpu_hours_pct": 0.1,
    "max_evictions_of_a_job": 3.0,
}
"""What a policy must keep to be called fair: later than on the queue's own partition (per cent of jobs), the
worst queue's mean completion time as a part of that there, evictions a job, GPU-hours lost, most evictions of
one job. The bounds of the bench ``fairness-philly``.
"""


@dataclass(frozen=True, slots=True)
class Order:
    """How the subtree shares; inside it the weights of a learned order, and of who may leave, if any."""

    name: str
    sharing: Sharing
    weights: Mapping[str, float] = field(default_factory=dict)
    victim_weights: Mapping[str, float] = field(default_factory=dict)

    def run(self) -> EngineRun:
        policy = Policy(
            sharing=self.sharing,
            order_weights=dict(self.weights),
            victim_weights=dict(self.victim_weights),
        )
        return EngineRun(policy=policy)


def lived(
    order: Order, window: Window, count: int = LIVES, tell: Callable[[str], None] | None = None
) -> list[Metrics]:
    """Figures of so many lives of ``window``; life 0 is the record itself."""
    run, found = order.run(), []
    for number, each in enumerate(lives(window.trace, count)):
        if tell:
            tell(f"{order.name}, {window.name}, life {number}")
        alone = replay(each, BASELINE, None)
        found.append(Lived(run.replay(each, window.nodes), alone).figures())
    return found


def lived_by_rival(rival: str, window: Window, count: int = LIVES) -> list[Metrics]:
    """The same lives under a rival of ``rivals.registry`` on the whole pool."""
    return [
        Lived(replay(each, rival, window.nodes), replay(each, BASELINE, None)).figures()
        for each in lives(window.trace, count)
    ]


def bounded(found: Sequence[Metrics]) -> dict[str, float]:
    """The bounded figures: means over the lives, of what no job should pass the most."""
    return {
        "unfair_pct": mean([m.fairness.unfair_pct for m in found]),
        "worst_queue_ratio": mean([m.fairness.worst_queue_ratio for m in found]),
        "evictions_per_job": mean([m.evictions_per_job for m in found]),
        "lost_gpu_hours_pct": mean([m.lost_gpu_hours_pct for m in found]),
        "max_evictions_of_a_job": float(max(m.max_evictions_of_a_job for m in found)),
    }


def broken(figures: Mapping[str, float]) -> list[str]:
    """The bounds that are passed."""
    return [name for name, bound in BOUNDS.items() if figures[name] > bound]


def is_promoted(against: Sequence[Difference], figures: Sequence[Mapping[str, float]]) -> bool:
    """The rule: better than every other order on every window, no bound passed on any."""
    better = all(one.verdict is Verdict.BETTER for one in against)
    return bool(against) and better and not any(broken(each) for each in figures)


def difference(other: Sequence[Metrics], mine: Sequence[Metrics], comparisons: int) -> Difference:
    """Of the mean completion time, seconds, life by life; below zero is sooner than ``other``."""
    return compare([m.avg_jct_s for m in other], [m.avg_jct_s for m in mine], comparisons)
