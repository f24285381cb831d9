"""The learned score: the sum of weight x feature of a workload that waits."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.order.features import feature_of
from scheduling.engine.state.input import Tree
from scheduling.engine.state.session import Session


@once
def is_learned(tree: Tree) -> bool:
    """Whether the policy states weights; without, least expected work goes first."""
    return bool(tree.sharing.weights.size > 0)


@inner
def score_of(world: Session, w: int) -> float:
    """Who has most goes first. A feature of weight 0 is not computed."""
    weights, total = world.tree.sharing.weights, 0.0
    for k in range(weights.size):
        if weights[k] != 0.0:
            total += weights[k] * feature_of(world, w, k)
    return total
