"""What the policy's weights make of the price of an eviction: halved by each unit of the learned score."""

from __future__ import annotations

import math

from scheduling.engine.compile.kernel import inner
from scheduling.engine.features import VICTIM_NAMES
from scheduling.engine.order.features import below_share, doublings, expected_rest, size
from scheduling.engine.state.session import Session

AT_RISK = VICTIM_NAMES.index("at_risk")
EXPECTED_REST = VICTIM_NAMES.index("expected_rest")
SIZE = VICTIM_NAMES.index("size")
ABOVE_SHARE = VICTIM_NAMES.index("above_share")
RAN = VICTIM_NAMES.index("ran")

TENTH_GPU_HOUR_S = 360.0
"""GPU-seconds."""
MOST_SCORE = 40.0
"""Either way: prices stay finite, and infinite means that somebody may not leave."""


@inner
def learned_price(world: Session, v: int, price: float) -> float:
    """``price`` in GPU-seconds, by the score of ``v``, which may leave; as it is without weights."""
    weights, score = world.tree.sharing.victim_weights, 0.0
    if weights.size == 0:
        return price
    for k in range(weights.size):
        if weights[k] != 0.0:
            score += weights[k] * _feature_of(world, v, k)
    return float(price * 2.0 ** -max(-MOST_SCORE, min(MOST_SCORE, score)))


@inner
def _feature_of(world: Session, v: int, k: int) -> float:
    """Feature number ``k`` of ``v``, which runs."""
    work = world.work
    if k == AT_RISK:
        return math.log2(1.0 + world.candidates.lost_gpu_s[v] / TENTH_GPU_HOUR_S)
    if k == EXPECTED_REST:
        return expected_rest(work, v)
    if k == SIZE:
        return size(work, v)
    if k == ABOVE_SHARE:
        return -below_share(world.division, world.queues, work.queue[v], work.gpu_class[v])
    if k == RAN:
        return doublings(world.rules.now - work.started[v])
    return float(work.evictions[v])
