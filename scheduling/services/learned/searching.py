"""The search for weights, so that it may stop anywhere and go on: the costs that are kept come first.

CMA-ES with one seed asks for the same weights whenever it hears the same costs, so what was lived before a
kill is only told to it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from scheduling.engine import model as m
from scheduling.engine.document.reader import parse
from scheduling.engine.features import NAMES
from scheduling.models import LearnedOrder
from scheduling.services.learned.figures import WAIT, bounded, most_allowed, of_life
from scheduling.services.learned.orders import HAND, LEARNED, by_merit, under
from scheduling.services.learned.windows import TRAINING, period_of
from scheduling.simulation.ahead.compare import alone
from scheduling.simulation.ahead.period import Judged, Period, drawn, live_again
from scheduling.simulation.learning.search import Training, search

SEEDS = (1, 2)
"""Draws of the training days under which each candidate lives."""
PENALTY = 0.2
"""What a bound of fairness passed by its own size costs, in parts of the wait."""
NEAR = 1.01
"""Costs so near the least that their weights might have been chosen as well."""
Weights = dict[str, float]
Cost = Callable[[Mapping[str, float]], float]
Keep = Callable[[], None]


class StoppedError(Exception):
    """The search is to go on another time."""


class Stage:
    """World and training days of a version, read once by a worker that lives several candidates."""

    def __init__(self, world: m.Snapshot, period: Period) -> None:
        self.world, self._ordered, self._period = world, by_merit(world), period
        self._draws = {seed: drawn(period, seed) for seed in SEEDS}
        apart = alone(world)
        self._own = {seed: live_again(apart, draw) for seed, draw in self._draws.items()}
        self._base = self._figures(under(world, HAND))
        self._most = most_allowed(bounded(self._base))

    def cost(
        self, weights: Mapping[str, float], victim_weights: Mapping[str, float] | None = None
    ) -> float:
        """The average wait as a part of that of the hand-written order, and the penalty."""
        found = self._figures(under(self.world, LEARNED, weights, victim_weights))
        figures = bounded(found)
        over = sum(max(0.0, figures[name] / most - 1) for name, most in self._most.items() if most)
        return round(_wait(found) / max(1.0, _wait(self._base)) + PENALTY * over, 5)

    def evicts(self, weights: Mapping[str, float]) -> bool:
        """Whether anybody leaves in the training days under these weights of the order."""
        found = self._figures(under(self.world, LEARNED, weights))
        return any(life["evictions_per_job"] for life in found)

    def life_of(
        self, weights: Mapping[str, float], victim_weights: Mapping[str, float], seed: int
    ) -> dict[str, float]:
        """The training days under a draw that no candidate was tried on, maybe."""
        if seed not in self._draws:
            self._draws[seed] = drawn(self._period, seed)
            self._own[seed] = live_again(alone(self.world), self._draws[seed])
        return self._life(under(self.world, LEARNED, weights, victim_weights), seed)

    def _figures(self, world: m.Snapshot) -> list[dict[str, float]]:
        return [self._life(world, seed) for seed in SEEDS]

    def _life(self, world: m.Snapshot, seed: int) -> dict[str, float]:
        lived: Judged = live_again(world, self._draws[seed])
        return of_life(lived, self._own[seed], self._ordered)


def _wait(lives: list[dict[str, float]]) -> float:
    return sum(life[WAIT] for life in lives) / len(lives)


@lru_cache(maxsize=1)
def stage_of(order_id: int) -> Stage:
    """Neither world nor training days of a version change while it is trained."""
    order = LearnedOrder.objects.get(pk=order_id)
    return Stage(parse(order.world), period_of(order.work[TRAINING]))


def go_on(order: LearnedOrder, cost: Cost, keep: Keep) -> None:
    """Search to the end. ``keep`` is called when ``order.tried`` has grown, and may raise StoppedError."""
    costs = remembering(order.tried, cost, keep)
    training = Training(
        sharing=m.Sharing(order.sharing),
        features=NAMES,
        seed=order.seed,
        generations=order.generations,
        population=order.population,
    )
    search(training, lambda one: costs(one.weights), lambda line: None)


def remembering(tried: list[Any], cost: Cost, keep: Keep) -> Cost:
    """``cost``, of which what stands in ``tried`` is not asked again; what is new is put there and kept."""
    at = 0

    def costs(weights: Mapping[str, float]) -> float:
        nonlocal at
        if at < len(tried) and tried[at][0] != dict(weights):
            # Another version of the library asks otherwise: what was tried from here on says nothing.
            del tried[at:]
        if at == len(tried):
            found = cost(weights)
            tried.append([dict(weights), found])
            keep()
        at += 1
        return float(tried[at - 1][1])

    return costs


def most_tries(order: LearnedOrder) -> int:
    return 1 + order.generations * order.population


def best(tried: Sequence[Any]) -> Weights:
    """Of what was tried, the least cost; the first of several."""
    found: Weights = min(tried, key=lambda pair: pair[1])[0]
    return found


def spread(tried: Sequence[Any]) -> dict[str, list[float]]:
    """By feature the least and the most weight among those whose cost is near the least."""
    least = min(cost for _, cost in tried)
    near = [weights for weights, cost in tried if cost <= NEAR * least]
    return {
        name: [min(one[name] for one in near), max(one[name] for one in near)] for name in near[0]
    }
