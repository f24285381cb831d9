"""Room for the short: where a subtree gives out by merit, no long work starts on the last free GPUs
unless it is due, or asks for so much that it could never leave them free.

It is a question of room, as with nodes that a gang keeps: ``w`` may hold as much wherever others leave.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.order.by_merit import by_merit, expected_gpu_s
from scheduling.engine.order.pending import RISEN
from scheduling.engine.reasons.figures import SHORT_KEPT
from scheduling.engine.state.input import Tree, need_of
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS

KEPT_SHARE, LONG_GPU_S = 1 / 24, 100_000.0
"""The part of the GPUs that is kept from longer work."""


@inner
def is_kept_for_short(world: Session, w: int, c: int) -> bool:
    """Whether the last free GPUs of class ``c`` are kept from ``w``: it is not due, has not waited past the
    bound of its class, and expects much work.
    """
    work, merit = world.work, world.ordering.merit
    if not by_merit(world.tree, work.queue[w]) or merit.promise_due[w]:
        return False
    if world.ordering.pending.rank[w] == RISEN or not LONG_GPU_S < merit.expected[w] < np.inf:
        return False
    need, free = need_of(work, w), _free(world.queues, c)
    whole = _shared_out(world.tree, world.division, world.queues, work.queue[w], c)
    floor = _kept_of(whole)
    could_leave_them = need <= whole - floor + EPS
    return bool(need <= free and free - need < floor and could_leave_them)


@inner
def _shared_out(tree: Tree, division: Division, queues: Queues, q: int, c: int) -> float:
    """Milli-GPU of class ``c`` that are given out where ``q`` shares."""
    top = tree.sharing.top[q]
    return float(division.fair[c, top]) if top > 0 else float(queues.demand.supply[c])


@inner
def _kept_of(whole: float) -> int:
    """Milli-GPU of ``whole`` that are kept, whole GPUs."""
    return int(whole * KEPT_SHARE / 1000.0 + 1e-6) * 1000


@inner
def _free(queues: Queues, c: int) -> int:
    return int(queues.demand.supply[c] - queues.usage.gpus[c, 0])


@inner
def tell_kept_for_short(world: Session, w: int) -> bool:
    """Whether that is why ``w`` waits, on the first class of its wish of which it is; its line says so."""
    work, out, q, c = world.work, world.out, world.work.queue[w], -1
    for k in range(work.wish.shape[0] - 1, -1, -1):
        if work.wish[k, w] >= 0 and is_kept_for_short(world, w, work.wish[k, w]):
            c = work.wish[k, w]
    if c < 0:
        return False
    out.reason[w], out.blame[w], out.rival[w], out.until[w] = codes.KEPT_FOR_SHORT, q, -1, 0.0
    out.figures[w].fill(0.0)
    floor = _kept_of(_shared_out(world.tree, world.division, world.queues, q, c))
    out.figures[w, SHORT_KEPT.free] = _free(world.queues, c)
    out.figures[w, SHORT_KEPT.needs] = need_of(work, w)
    out.figures[w, SHORT_KEPT.kept_free] = floor
    out.figures[w, SHORT_KEPT.expected_gpu_s] = expected_gpu_s(work, w)
    return True
