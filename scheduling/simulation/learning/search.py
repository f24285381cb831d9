"""Weights of an order, and of who may leave, found in the simulator by CMA-ES (Hansen and Ostermeier, Evol.
Comp. 9, 2001).

A candidate lives the training windows; its cost is the mean over them of its average wait as a part of that
of the order it started from, and a penalty for each fairness bound that it passes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduling.engine.features import MOST_WEIGHT, NAMES, VICTIM_NAMES
from scheduling.engine.model import Sharing
from scheduling.simulation.learning.judging import BOUNDS, Order, bounded, lived
from scheduling.simulation.learning.windows import Window

MOST_GENERATIONS, MOST_POPULATION = 200, 64
STARTS: Mapping[Sharing, Mapping[str, float]] = {
    Sharing.PROMISE: {"expected_rest": -1.0, "size": -1.0},
    Sharing.THROUGHPUT: {"expected_rest": -1.0, "size": -0.25},
}
"""The hand-written order of each rule, as weights: the search begins there."""

Cost = Callable[[Order], float]


@dataclass(frozen=True, slots=True)
class Training:
    """How the search is run. The weights of ``features``, and of ``victim_features`` for who may leave, are
    free; those of ``fixed`` stay, all others are 0. With no weight of the order at all the hand-written one
    stays. ``penalty`` is what a bound passed by its own size costs, in parts of the wait. Raises ValueError
    past what is bounded.
    """

    sharing: Sharing
    features: tuple[str, ...]
    penalty: float = 0.0
    seed: int = 1
    generations: int = 4
    population: int = 6
    spread: float = 0.25
    lives: int = 1
    victim_features: tuple[str, ...] = ()
    fixed: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.sharing not in STARTS:
            raise ValueError("sharing: an order is learned for promise or throughput alone")
        _check_known("features", self.features, NAMES)
        _check_known("victim_features", self.victim_features, VICTIM_NAMES)
        _check_known("fixed", tuple(self.fixed), NAMES)
        if len(self.features) + len(self.victim_features) < 2:
            raise ValueError("features: the search needs two or more that are free")
        if not 1 <= self.generations <= MOST_GENERATIONS:
            raise ValueError(f"generations: expected 1 to {MOST_GENERATIONS}")
        if not 2 <= self.population <= MOST_POPULATION:
            raise ValueError(f"population: expected 2 to {MOST_POPULATION}")

    def order(self, values: Sequence[float]) -> Order:
        """With the free weights at ``values``, those of the order first; rounded, so that a file holds
        exactly what was lived.
        """
        rounded = [round(float(value), 4) for value in values]
        many = len(self.features)
        mine = {**self.fixed, **dict(zip(self.features, rounded[:many], strict=True))}
        victims = dict(zip(self.victim_features, rounded[many:], strict=True))
        return Order("candidate", self.sharing, mine, victims)

    def start(self) -> list[float]:
        """The hand-written order, or what is fixed, and the hand-written price of evictions."""
        known = {**STARTS[self.sharing], **self.fixed}
        return [known.get(name, 0.0) for name in self.features] + [0.0] * len(self.victim_features)


def _check_known(field_name: str, given: tuple[str, ...], names: Sequence[str]) -> None:
    if not set(given) <= set(names):
        raise ValueError(f"{field_name}: expected some of {', '.join(names)}")


@dataclass(frozen=True, slots=True)
class Found:
    """``cost`` of the weights, ``start_cost`` of those it began with; the best cost by generation."""

    weights: Mapping[str, float]
    cost: float
    start_cost: float
    course: tuple[float, ...] = field(default=())
    victim_weights: Mapping[str, float] = field(default_factory=dict)


def train(
    training: Training, windows: Sequence[Window], tell: Callable[[str], None] = lambda line: None
) -> Found:
    """The weights of least cost on ``windows``, the same for one seed; ``tell`` hears each generation."""
    return search(training, yardstick(training, windows), tell)


def yardstick(training: Training, windows: Sequence[Window]) -> Cost:
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
    """CMA-ES over the free weights from the hand-written ones; the start itself is kept if it is best."""
    with warnings.catch_warnings():
        # It says that it cannot draw, which nobody asks of it.
        warnings.simplefilter("ignore", UserWarning)
        from cma import CMAEvolutionStrategy  # a second, and only who trains needs it

    first = training.start()
    options = {
        "seed": training.seed,
        "popsize": training.population,
        "bounds": [-MOST_WEIGHT, MOST_WEIGHT],
        "verbose": -9,
    }
    strategy = CMAEvolutionStrategy(first, training.spread, options)
    best = training.order(first)
    start_cost = best_cost = cost(best)
    course = []
    for generation in range(1, training.generations + 1):
        asked = strategy.ask()
        costs = [cost(training.order(one)) for one in asked]
        strategy.tell(asked, costs)
        if min(costs) < best_cost:
            best_cost, best = min(costs), training.order(asked[int(np.argmin(costs))])
        course.append(min(costs))
        tell(f"generation {generation} of {training.generations}: least cost {best_cost:.4f}")
    return Found(best.weights, best_cost, start_cost, tuple(course), best.victim_weights)
