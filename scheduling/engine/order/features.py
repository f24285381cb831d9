"""The features of ``scheduling.engine.features``, computed of a workload that waits; what they share with
those of who may leave.
"""

from __future__ import annotations

import math

import numpy as np

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.features import NAMES
from scheduling.engine.state.input import Rules, Work
from scheduling.engine.state.order import Ordering
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.shares import Division
from scheduling.engine.state.units import GPUS

EXPECTED_REST = NAMES.index("expected_rest")
SIZE = NAMES.index("size")
WAITED = NAMES.index("waited")
BEHIND = NAMES.index("behind")
BELOW_SHARE = NAMES.index("below_share")
USER_SHARE = NAMES.index("user_share")
FITS_NODE = NAMES.index("fits_node")
SAVED = NAMES.index("saved")

HOUR_S, TEN_MINUTES_S = 3600.0, 600.0
LONGEST_S = 30 * 86_400.0
"""Of an expected run time that is longer, or unknown."""


@inner
def feature_of(world: Session, w: int, k: int) -> float:  # noqa: PLR0911 - one line a feature
    """Feature number ``k`` of ``w``, which waits in a known queue."""
    work, now = world.work, world.rules.now
    if k == EXPECTED_REST:
        return expected_rest(work, w)
    if k == SIZE:
        return size(work, w)
    if k == WAITED:
        return doublings(now - work.submitted[w])
    if k == BEHIND:
        return _behind(work, world.rules, w)
    if k == BELOW_SHARE:
        return below_share(world.division, world.queues, work.queue[w], work.wish[0, w])
    if k == USER_SHARE:
        return math.log2(1.0 + world.queues.usage.user_weighted[work.user[w]] / 1000.0)
    if k == FITS_NODE:
        return _fits_node(work, world.ordering, w)
    if k == SAVED:
        return doublings(work.saved[w])
    return float(work.evictions[w])


@inner
def expected_rest(work: Work, w: int) -> float:
    return math.log2(max(1.0, min(work.rank[w], LONGEST_S)) / HOUR_S)


@inner
def size(work: Work, w: int) -> float:
    return math.log2(max(1, work.need[GPUS, w] * work.most[w]) / 1000.0)


@inner
def doublings(time_s: float) -> float:
    return math.log2(1.0 + max(0.0, time_s) / TEN_MINUTES_S)


@once
def _behind(work: Work, rules: Rules, w: int) -> float:
    """Negative while its own quota would have it wait longer; 0 before its virtual start."""
    if work.virtual[w] == np.inf:
        return 0.0
    late_s = rules.now - work.virtual[w] - work.saved[w]
    return doublings(late_s) - doublings(-late_s)


@inner
def below_share(division: Division, queues: Queues, q: int, c: int) -> float:
    """Of queue ``q``; 0 where the class is none."""
    if c < 0:
        return 0.0
    fair = division.fair[c, q]
    return float(max(-1.0, min(1.0, (fair - queues.usage.held[c, q]) / max(1000.0, fair))))


@once
def _fits_node(work: Work, ordering: Ordering, w: int) -> float:
    """The widest free room of each class was noted before."""
    widest = ordering.merit.widest
    need = work.need[GPUS, w] * work.least[w]
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c >= 0 and widest[c] >= need:
            return 1.0
    return 0.0
