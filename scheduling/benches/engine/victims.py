"""Learned prices of evictions: found on October beside the order that ships, judged on November against that
order alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from scheduling.benches.engine.learned import november, philly, told, training_windows
from scheduling.benches.engine.outcomes import Outcome, Progress
from scheduling.engine.features import VICTIM_NAMES
from scheduling.simulation.learning.frozen import read_frozen
from scheduling.simulation.learning.judging import Order, bounded, broken, difference, lived
from scheduling.simulation.learning.search import Found, Training, train
from scheduling.simulation.learning.windows import Window, keep_apart
from scheduling.simulation.replay.sharing_lives import LIVES
from scheduling.simulation.replications import Verdict
from scheduling.simulation.result import Metrics


def bench_learned_victims(traces: Path, progress: Progress) -> Outcome:
    """Finds weights of victims on October; the order keeps its own. Writes no file."""
    trace, order = philly(traces), read_frozen()[0].order
    windows, window = training_windows(trace), november(trace)
    keep_apart(windows, [window])
    training = victims_of(order)
    found = train(training, windows, progress)
    outcome = Outcome(inputs=trace.checksums(), seeds=[training.seed], notes=NOTES)
    outcome.measured |= told_of_search(found)
    alone = replace(order, name="order_alone")
    both = replace(order, name="with_victims", victim_weights=found.victim_weights)
    for each in windows:
        outcome.measured |= told(each, lives_of((alone, both), each, progress))
    outcome.measured |= judged_against(alone, both, window, progress)
    return outcome


def victims_of(order: Order) -> Training:
    """All features of who may leave are free, beside ``order`` as it is."""
    return Training(order.sharing, (), victim_features=VICTIM_NAMES, fixed=order.weights)


def told_of_search(found: Found) -> dict[str, float]:
    costs = {"cost": round(found.cost, 4), "start_cost": round(found.start_cost, 4)}
    return costs | {f"weight_{name}": weight for name, weight in found.victim_weights.items()}


def lives_of(
    orders: Sequence[Order], window: Window, progress: Progress
) -> dict[str, list[Metrics]]:
    return {each.name: lived(each, window, LIVES, progress) for each in orders}


def judged_against(
    order: Order, other: Order, window: Window, progress: Progress
) -> dict[str, float]:
    """Both on ``window``, and how much sooner work is complete under ``other``, seconds."""
    lives = lives_of((order, other), window, progress)
    gap = difference(lives[order.name], lives[other.name], 1)
    figures = told(window, lives)
    for name, each in lives.items():
        figures |= {f"{window.name}_{name}_{key}": round(v, 4) for key, v in bounded(each).items()}
        figures[f"{window.name}_{name}_bounds_passed"] = float(len(broken(bounded(each))))
    return figures | {
        f"{window.name}_less_order_s": round(gap.mean, 2),
        f"{window.name}_less_order_half_s": round(float(gap.half or np.nan), 2),
        "better": float(gap.verdict is Verdict.BETTER),
    }


NOTES = [
    "cost: wait on the training windows as a part of that of the hand-written order",
    "start_cost: that of the order alone, whose weights stay; both costs are of one life",
    "october_*: the training windows once more, means of five lives",
    "*_less_order_s: mean completion time less that of the order alone, life by life, and half of its "
    "interval at 95 %",
]
