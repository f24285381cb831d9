"""Finds which values of the policy to choose in which situation, by the cross-entropy method.

De Boer, Kroese, Mannor and Rubinstein (Ann. Oper. Res. 134, 2005): candidates are drawn from a distribution
over choices, the best of them shape the next. A candidate lives every training window once a generation; its
cost is the mean over the windows of its waiting as a part of that under the shipped policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workshop.training.environment import KNOBS, Choices, Floats, PolicyEnv
from workshop.training.windows import Window

Tell = Callable[[str], None]
FEW, MANY = 3.0, 6.0
"""Of the logarithm of those that wait: below 7 they are few, from 63 on many."""
SITUATIONS = 3
SMOOTHING = 0.6
"""How much of a distribution comes from the best of the last generation."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``choices[situation, knob]``: the number of a value; one row for few, some and many that wait."""

    choices: Choices

    def act(self, seen: Floats) -> Choices:
        return np.asarray(self.choices[int(seen[0] >= FEW) + int(seen[0] >= MANY)])


def constant(action: Sequence[int]) -> Rule:
    """The same values in every situation."""
    return Rule(np.tile(np.array(action, np.int64), (SITUATIONS, 1)))


SHIPPED = constant([0] * len(KNOBS))


@dataclass(frozen=True, slots=True)
class Training:
    """How it is searched. Raises ValueError where nobody could be chosen."""

    seed: int = 1
    generations: int = 4
    population: int = 8
    best: int = 2

    def __post_init__(self) -> None:
        if self.generations < 1 or not 1 <= self.best < self.population:
            raise ValueError("training: expected a generation or more, and 1 <= best < population")


@dataclass(frozen=True, slots=True)
class TrainedRule:
    """The rule of least cost, that cost (1 is the shipped policy), and the least of each generation."""

    rule: Rule
    cost: float
    course: tuple[float, ...]


def waited_h(rule: Rule, env: PolicyEnv, seed: int) -> float:
    """Hours that work waited in the episode of that seed."""
    seen, _ = env.reset(seed=seed)
    total, is_over, is_cut = 0.0, False, False
    while not (is_over or is_cut):
        seen, reward, is_over, is_cut, _ = env.step(rule.act(seen))
        total -= reward
    return total


def train(
    training: Training, windows: Sequence[Window], tell: Tell = lambda line: None
) -> TrainedRule:
    """The same for one seed. The shipped policy is kept where nothing is better."""
    dice = np.random.default_rng(training.seed)
    envs = [PolicyEnv(window) for window in windows]
    base = [max(1e-9, waited_h(SHIPPED, env, training.seed)) for env in envs]

    def cost(rule: Rule) -> float:
        pairs = zip(envs, base, strict=True)
        return float(np.mean([waited_h(rule, env, training.seed) / b for env, b in pairs]))

    chances = [np.full((SITUATIONS, len(knob.values)), 1 / len(knob.values)) for knob in KNOBS]
    best, least, course = SHIPPED, 1.0, []
    for generation in range(training.generations):
        rules = [_drawn(chances, dice) for _ in range(training.population)]
        costs = [cost(rule) for rule in rules]
        order = np.argsort(costs, kind="stable")
        _learn(chances, [rules[i] for i in order[: training.best]])
        if costs[order[0]] < least:
            best, least = rules[order[0]], costs[order[0]]
        course.append(costs[order[0]])
        tell(f"generation {generation + 1} of {training.generations}: least cost {least:.4f}")
    return TrainedRule(best, least, tuple(course))


def _drawn(chances: Sequence[npt.NDArray[np.float64]], dice: np.random.Generator) -> Rule:
    drawn = [[dice.choice(len(row), p=row) for row in table] for table in chances]
    return Rule(np.array(drawn, np.int64).T)


def _learn(chances: Sequence[npt.NDArray[np.float64]], best: Sequence[Rule]) -> None:
    for k, table in enumerate(chances):
        for s in range(SITUATIONS):
            chosen = np.bincount([rule.choices[s, k] for rule in best], minlength=table.shape[1])
            table[s] = SMOOTHING * chosen / len(best) + (1 - SMOOTHING) * table[s]
