"""Progressive filling: the one primitive of the division."""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import Floats
from scheduling.engine.compiled import inner
from scheduling.engine.sorting import order_of


@inner
def fill(total: float, want: Floats, weight: Floats, got: Floats) -> float:
    """Pour ``total`` over the wants in ratio of weight; whoever is full leaves the rest to the others.

    Weighted max-min fairness (Bertsekas and Gallager, Data Networks, 6.5.2): the level t rises until
    sum(min(want, weight t)) = total. Weight zero gets nothing. Adds to ``got`` and returns what
    remains once all are full. Filling in order of want / weight needs one pass.
    """
    size = want.size
    level = np.full(size, np.inf)
    weights = 0.0
    for i in range(size):
        if weight[i] > 0.0 and want[i] > 0.0:
            level[i] = want[i] / weight[i]
            weights += weight[i]
    for i in order_of(level):
        if level[i] == np.inf or total <= 0.0:
            break
        part = total * weight[i] / weights if weight[i] < weights else total
        part = min(part, want[i])
        got[i] += part
        total -= part
        weights -= weight[i]
    return max(total, 0.0)
