"""Weights of an order, found in the simulator by CMA-ES (Hansen and Ostermeier, Evol. Comp. 9, 2001).

A candidate lives the training windows; its cost is the mean over them of its average wait as a part of that
of the order it started from, and a penalty for each fairness bound that it passes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduling.engine.features import MOST_WEIGHT, NAMES
from scheduling.engine.model import Sharing
from scheduling.simulation.learning.judging import BOUNDS, Order, bounded, lived
from scheduling.simulation.learning.windows import Window

MOST_GENERATIONS, MOST_POPULATION = 200, 64
STARTS: Mapping[Sharing, Mapping[str, float]] = {
    Sharing.PROMISE: {"expected_rest": -1.0, "size": -1.0},
    Sharing.THROUGHPUT: {"expected_rest": -1.0, "size": -0.25},
}
"""The hand-written order of each rule, as weights: the search begins there."""

Cost = Callable[[Mapping[str, float]], float]


@dataclass(frozen=True, slots=True)
class Training:
    """How the search is run. ``features`` are free, all other weights stay 0; ``penalty`` is what a bound
    passed by its own size costs, in parts of the wait. Raises ValueError past what is bounded.
    """

    sharing: Sharing
    features: tuple[str, ...]
    penalty: float = 0.0
    seed: int = 1
    generations: int = 4
    population: int = 6
    spread: float = 0.25
    lives: int = 1

    def __post_init__(self) -> None:
        if self.sharing not in STARTS:
            raise ValueError("sharing: an order is learned for promise or throughput alone")
        if not set(self.features) <= set(NAMES) or len(self.features) < 2:
            raise ValueError(f"features: expected two or more of {', '.join(NAMES)}")
        if not 1 <= self.generations <= MOST_GENERATIONS:
            raise ValueError(f"generations: expected 1 to {MOST_GENERATIONS}")
        if not 2 <= self.population <= MOST_POPULATION:
            raise ValueError(f"population: expected 2 to {MOST_POPULATION}")


@dataclass(frozen=True, slots=True)
class Found:
    """``cost`` of the weights, ``start_cost`` of those it began with; the best cost by generation."""

    weights: Mapping[str, float]
    cost: float
    start_cost: float
    course: tuple[float, ...] = field(default=())


def train(
    training: Training, windows: Sequence[Window], tell: Callable[[str], None] = lambda line: None
) -> Found:
    """The weights of least cost on ``windows``, the same for one seed; ``tell`` hears each generation."""
    return search(training, cost_on(training, windows), tell)


def cost_on(training: Training, windows: Sequence[Window]) -> Cost:
    """What each candidate costs, against the hand-written order of the rule."""
    yard = yardstick(training, windows)
    return lambda weights: yard(Order("candidate", training.sharing, weights))


def yardstick(training: Training, windows: Sequence[Window]) -> Callable[[Order], float]:
    """The cost of any order, of whatever rule, against the hand-written one of ``training``."""
    start = Order("start", training.sharing)
    base = [_wait(start, window, training.lives) for window in windows]

    def cost(order: Order) -> float:
        pairs = zip(windows, base, strict=True)
        return float(np.mean([_part(order, window, wait_s, training) for window, wait_s in pairs]))

    return cost


def _wait(order: Order, window: Window, count: int) -> float:
    return float(np.mean([m.avg_wait_s for m in lived(order, window, count)]))


def _part(order: Order, window: Window, base_s: float, training: Training) -> float:
    found = lived(order, window, training.lives)
    wait_s, figures = float(np.mean([m.avg_wait_s for m in found])), bounded(found)
    past = sum(max(0.0, figures[name] / bound - 1.0) for name, bound in BOUNDS.items())
    return wait_s / max(1.0, base_s) + training.penalty * past


def search(training: Training, cost: Cost, tell: Callable[[str], None]) -> Found:
    """CMA-ES over the free features from the hand-written weights; the start itself is kept if it is best."""
    with warnings.catch_warnings():
        # It says that it cannot draw, which nobody asks of it.
        warnings.simplefilter("ignore", UserWarning)
        from cma import CMAEvolutionStrategy  # a second, and only who trains needs it

    first = [STARTS[training.sharing].get(name, 0.0) for name in training.features]
    options = {
        "seed": training.seed,
        "popsize": training.population,
        "bounds": [-MOST_WEIGHT, MOST_WEIGHT],
        "verbose": -9,
    }
    strategy = CMAEvolutionStrategy(first, training.spread, options)
    start_cost = best_cost = cost(_named(training, first))
    best, course = first, []
    for generation in range(1, training.generations + 1):
        asked = strategy.ask()
        costs = [cost(_named(training, one)) for one in asked]
        strategy.tell(asked, costs)
        if min(costs) < best_cost:
            best_cost, best = min(costs), [float(x) for x in asked[int(np.argmin(costs))]]
        course.append(min(costs))
        tell(f"generation {generation} of {training.generations}: least cost {best_cost:.4f}")
    return Found(_named(training, best), best_cost, start_cost, tuple(course))


def _named(training: Training, values: Sequence[float]) -> dict[str, float]:
    """Rounded, so that a file holds exactly what was lived."""
    return {
        name: round(float(value), 4) for name, value in zip(training.features, values, strict=True)
    }
