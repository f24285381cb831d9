"""What matters to the boosted model: by how much worse it is when it does not know one thing.

On runs that its trees were not fitted to, the numbers that say one thing are handed from run to run at
random, and the loss is taken again (permutation importance, Breiman 2001). Numbers that say the same in
several ways are handed on together, or each would seem to be worth nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .features import LEVELS_SEEN, NAMES, OF_GROUP, SAID
from .gradient_boosting import Forest
from .history import GROUPS
from .learner import Learner
from .quantiles import LEVELS

Floats = npt.NDArray[np.float64]

KNOWN: Mapping[str, tuple[str, ...]] = {
    "limit": ("limit",),
    "size": ("gpus", "memory"),
    "time": ("hour", "weekday"),
    "type": ("type",),
    "user_open": ("since", "open"),
    "recipe_open": ("since_recipe", "open_recipe", "oldest", "newest"),
    "history": SAID,
    **{
        f"last_{GROUPS[place]}": tuple(f"{GROUPS[place]}_{name}" for name in OF_GROUP)
        for place in LEVELS_SEEN
    },
}
"""One thing -> the features that say it; together all of them."""
LEAST_RUNS = 100
MOST_RUNS = 400
"""Bounds the time: about a second."""
REPEATS = 3
SEED = 7


@dataclass(frozen=True, slots=True)
class Weight:
    """``loss_pct``: by how much larger the loss is without ``name``, in percent."""

    name: str
    loss_pct: float


def weights(learner: Learner) -> tuple[int, list[Weight]]:
    """Judged on how many runs, and the weights, the largest first; none where too few are unseen."""
    forest, rows = _judged(learner)
    if forest is None:
        return 0, []
    table = np.array([row for row, _ in rows])
    targets = np.array([target for _, target in rows])
    whole = _loss(forest, table, targets)
    dice = np.random.default_rng(SEED)
    found = []
    for name, features in KNOWN.items():
        columns = [NAMES.index(feature) for feature in features]
        losses = [_loss(forest, _shuffled(table, columns, dice), targets) for _ in range(REPEATS)]
        found.append(Weight(name, round(100 * (float(np.mean(losses)) / whole - 1), 2)))
    return len(rows), sorted(found, key=lambda one: -one.loss_pct)


def _judged(learner: Learner) -> tuple[Forest | None, list[tuple[list[float], float]]]:
    """The trees of the last fit and what ended since, else those before with what ended until it."""
    if learner.models.forest is not None and learner.unseen >= LEAST_RUNS:
        return learner.models.forest, list(learner.rows)[-min(learner.unseen, MOST_RUNS) :]
    if learner.before is not None and len(learner.before[1]) >= LEAST_RUNS:
        forest, rows = learner.before
        return forest, rows[-MOST_RUNS:]
    return None, []


def _shuffled(table: Floats, columns: list[int], dice: np.random.Generator) -> Floats:
    handed_on = table.copy()
    handed_on[:, columns] = table[dice.permutation(len(table))][:, columns]
    return handed_on


def _loss(forest: Forest, table: Floats, targets: Floats) -> float:
    """Mean pinball loss over ``LEVELS``."""
    said = np.sort(forest.predict_all(table), axis=1)
    over = targets[:, np.newaxis] - said
    levels = np.array(LEVELS)
    return float(np.maximum(levels * over, (levels - 1) * over).mean())
