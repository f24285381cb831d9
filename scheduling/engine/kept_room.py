"""Room for the short: where a subtree gives out by merit, no long work starts on the last free GPUs
unless it is due.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission import need_of
from scheduling.engine.arrays import UNLIMITED
from scheduling.engine.compiled import inner, once
from scheduling.engine.line import RISEN
from scheduling.engine.merit import by_merit
from scheduling.engine.record import quote
from scheduling.engine.world import World

KEPT_SHARE, LONG_GPU_S = 1 / 24, 100_000.0
"""The part of the GPUs that is kept from who expects longer work."""


@inner
def keeps_off(world: World, w: int, c: int) -> bool:
    """Whether the last free GPUs of class ``c`` are kept from ``w``: it is not due, has not waited past the
    bound of its class, and expects much work.
    """
    if not by_merit(world, w) or world.merit.due[w] or world.line.rank[w] == RISEN:
        return False
    if not LONG_GPU_S < world.merit.expected[w] < np.inf:
        return False
    need = need_of(world, w)
    free = world.book.supply[c] - world.book.held[c, 0]
    off = need <= free and free - need < kept_for_short(world, w, c)
    world.merit.kept_off[w] = world.merit.kept_off[w] or off
    return bool(off)


@inner
def kept_for_short(world: World, w: int, c: int) -> int:
    """Milli-GPU of class ``c`` that are kept where ``w`` shares, whole GPUs."""
    top = world.tree.top[world.work.queue[w]]
    whole = world.division.fair[c, top] if top > 0 else float(world.book.supply[c])
    return int(whole * KEPT_SHARE / 1000.0 + 1e-6) * 1000


@once
def tell_kept_off(world: World, w: int, c: int) -> None:
    """That is why ``w`` waits."""
    out, c = world.out, max(c, 0)
    need = need_of(world, w)
    out.reason[w], out.rival[w], out.until[w] = codes.KEPT_FOR_SHORT, -1, 0.0
    expected = min(world.merit.expected[w], float(UNLIMITED))
    quote(
        out,
        w,
        world.work.queue[w],
        world.book.supply[c] - world.book.held[c, 0],
        need,
        kept_for_short(world, w, c),
        expected,
    )
    out.figures[w, 4] = out.figures[w, 5] = 0.0
