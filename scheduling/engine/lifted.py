"""Nobody leaves for an excess that the same plan makes.

Who starts past the share of its queue may entitle somebody who waits to other work of that queue: a plan
that lets both happen loses work to serve a borrower. So that borrower steps back, and its queue passes its
share no more in this plan. What it would have borrowed stays with who waits, which is owed it.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission import need_of
from scheduling.engine.arrays import BEGUN, EPS, GPUS, LEFT, Flags, Ints
from scheduling.engine.changed import EVERY, ROOM, changed
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import Hunt, held_by, is_own
from scheduling.engine.precedence import all_step_back, ask_again
from scheduling.engine.prey import END, FIRST
from scheduling.engine.promised import pledge_anew, unpledge
from scheduling.engine.standing import (
    common_ancestor,
    is_below,
    left_by,
    levels_over,
    rounded_reach,
)
from scheduling.engine.statement import MOVES, search_afresh
from scheduling.engine.victims import give_up
from scheduling.engine.world import World


@inner
def steps_back_instead(world: World, hunt: Hunt) -> bool:
    """Whether one of the chosen would leave for an excess made in this plan: who made it steps back, and
    nobody leaves.
    """
    rounds = world.book.rounds
    if rounds[BEGUN] == 0 or rounds[LEFT] == 0:
        return False
    q = _lifted(world, hunt)
    if q < 0:
        return False
    give_up(world, hunt)
    who = _lifters(world, hunt.c, q)
    world.book.tame[hunt.c, q] = hunt.w
    all_step_back(world, who)
    search_afresh(world)
    changed(world, ROOM, hunt.c, EVERY)
    for v in who:
        unpledge(world, v)
    ask_again(world, hunt.w, hunt.c, who)
    pledge_anew(world)
    return True


@once
def _lifted(world: World, hunt: Hunt) -> int:
    """The first queue of the chosen that would keep them but for what has just started there; -1 if none."""
    prey, tree, held, begun = world.prey, world.tree, world.book.held, _begun(world, hunt.c)
    for k in range(prey.count[FIRST], prey.count[END]):
        v = prey.picked[k]
        if prey.part[k] == MOVES or is_own(world, hunt, v):
            continue
        gpus = held_by(world, v) if prey.part[k] < 0 else world.work.need[GPUS, v]
        q = world.work.queue[v]
        meet = common_ancestor(tree, q, world.work.queue[hunt.w])
        while q != meet:
            above = held[hunt.c, q] + gpus - left_by(world, hunt.c, q, hunt.stretch)
            if begun[q] > 0 and above - begun[q] <= EPS:
                return int(q)
            q = tree.parent[q]
    return -1


@inner
def _gives_way(world: World, v: int, c: int, top: int) -> bool:
    """Whether ``v``, in ``top`` or below it, starts or is promised room, and nobody left for it."""
    out = world.out
    starts = out.action[v] == codes.ADMIT or out.reason[v] == codes.AWAITS_VICTIMS
    if not starts or out.gpu_class[v] != c or out.served[v] or world.work.claims[v]:
        return False
    return bool(is_below(world.tree, world.work.queue[v], top))


@once
def _begun(world: World, c: int) -> Ints:
    """By queue, milli-GPU of class ``c`` that such work in it and below it gets."""
    out, begun = world.out, np.zeros(world.tree.parent.size, np.int64)
    for k in range(out.used[0]):
        v = out.order[k]
        q = world.work.queue[v] if _gives_way(world, v, c, 0) else 0
        while q > 0:
            begun[q] += out.members[v] * world.work.need[GPUS, v]
            q = world.tree.parent[q]
    return begun


@once
def _lifters(world: World, c: int, top: int) -> Ints:
    """Who lifts ``top`` past its share, those who started last."""
    out = world.out
    who, size = np.empty(out.used[0], np.int64), 0
    above = world.book.held[c, top] - world.division.fair[c, top]
    for k in range(out.used[0] - 1, -1, -1):
        v = out.order[k]
        if above <= EPS:
            break
        if _gives_way(world, v, c, top):
            who[size] = v
            size += 1
            above -= out.members[v] * world.work.need[GPUS, v]
    return who[:size]


@inner
def entitles_somebody(world: World, since: int) -> bool:
    """Whether a start from decision ``since`` on passes its share in a class of which somebody waits who may
    reclaim: it may be entitled to what that queue runs.
    """
    out, lifted = world.out, np.zeros(world.book.holder.size, np.bool_)
    for k in range(since, out.used[0]):
        v, c = out.order[k], out.gpu_class[out.order[k]]
        if out.action[v] != codes.ADMIT and out.reason[v] != codes.AWAITS_VICTIMS:
            continue
        q = world.work.queue[v]
        over = levels_over(world.tree, world.book, world.division, q, c, 0)
        lifted[c] = lifted[c] or over > 0
    return bool(lifted.any()) and _may_reclaim(world, lifted)


@once
def _may_reclaim(world: World, among: Flags) -> bool:
    """Whether somebody waits of whom a part at most passes the share of its queue in a class ``among`` those
    that it accepts.
    """
    line, work = world.line, world.work
    for k in range(line.count[0]):
        v = line.item[k]
        for i in range(work.wish.shape[0] if world.out.action[v] == codes.WAIT else 0):
            c = work.wish[i, v]
            if c < 0:
                break
            if (
                among[c]
                and rounded_reach(world, work.queue[v], c, need_of(world, v)) != work.queue[v]
            ):
                return True
    return False
