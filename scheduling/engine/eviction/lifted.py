"""Nobody leaves for an excess that the same plan makes.

Who starts past the share of its queue may entitle somebody who waits to other work of that queue: a plan
that lets both happen loses work to serve a borrower. So that borrower steps back, and its queue passes its
share no more in this plan. What it would have borrowed stays with who waits, which is owed it.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.allocate import need_of
from scheduling.engine.admission.promise import pledge_anew, unpledge_all
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import Flags, Ints
from scheduling.engine.eviction.free_seats import give_up
from scheduling.engine.eviction.precedence import all_step_back, ask_again
from scheduling.engine.eviction.rules import VictimRequest, held_by, is_own
from scheduling.engine.quota.fair_share import (
    common_ancestor,
    is_below,
    left_by,
    levels_over,
    rounded_reach,
)
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Tree, Work
from scheduling.engine.state.queues import Borrowing
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS, GPUS
from scheduling.engine.statement.changed import EVERY, ROOM, changed
from scheduling.engine.statement.statement import MOVES, search_afresh


@inner
def forget_stops(borrowing: Borrowing) -> None:
    """Every queue may pass its share again."""
    for c in range(borrowing.stopped_for.shape[0]):
        for q in range(borrowing.stopped_for.shape[1]):
            borrowing.stopped_for[c, q] = -1


@inner
def steps_back_instead(world: Session, request: VictimRequest) -> bool:
    """Whether one of the chosen would leave for an excess made in this plan: who made it steps back, and
    nobody leaves.
    """
    rounds = world.queues.round
    if rounds.starts == 0 or rounds.left == 0:
        return False
    q = _lifted(world, request)
    if q < 0:
        return False
    give_up(world, request)
    who = _lifters(world, request.c, q)
    world.queues.borrowing.stopped_for[request.c, q] = request.w
    all_step_back(world, who)
    search_afresh(world)
    changed(world, ROOM, request.c, EVERY)
    for v in who:
        unpledge_all(world.room, world.out, v)
    ask_again(world, request.w, request.c, who)
    pledge_anew(world.room, world.out, world.work)
    return True


@once
def _lifted(world: Session, request: VictimRequest) -> int:
    """The first queue of the chosen that would keep them but for what has just started there; -1 if none."""
    log, tree, c = world.candidates.log, world.tree, request.c
    begun = _begun(world.out, world.work, tree, c)
    for k in range(log.first, log.size):
        v = log.slot[k]
        if log.part[k] == MOVES or is_own(world, request, v):
            continue
        gpus = held_by(world, v) if log.part[k] < 0 else world.work.need[GPUS, v]
        q = world.work.queue[v]
        meet = common_ancestor(tree, q, world.work.queue[request.w])
        while q != meet:
            held = world.queues.usage.held[c, q] + gpus
            above = held - left_by(world, c, q, request.stretch)
            if begun[q] > 0 and above - begun[q] <= EPS:
                return int(q)
            q = tree.parent[q]
    return -1


@inner
def _gives_way(out: Decisions, work: Work, v: int, c: int) -> bool:
    """Whether ``v`` starts or is promised room on class ``c``, and nobody left for it."""
    starts = out.action[v] == codes.ADMIT or out.reason[v] == codes.AWAITS_VICTIMS
    return bool(
        starts and out.gpu_class[v] == c and not out.starts.served[v] and not work.claims[v]
    )


@once
def _begun(out: Decisions, work: Work, tree: Tree, c: int) -> Ints:
    """By queue, milli-GPU of class ``c`` that such work in it and below it gets."""
    begun = np.zeros(tree.parent.size, np.int64)
    for k in range(out.size[0]):
        v = out.order[k]
        q = work.queue[v] if _gives_way(out, work, v, c) else 0
        while q > 0:
            begun[q] += out.members[v] * work.need[GPUS, v]
            q = tree.parent[q]
    return begun


@once
def _lifters(world: Session, c: int, top: int) -> Ints:
    """Who lifts ``top`` past its share, those who started last."""
    out, work = world.out, world.work
    who, size = np.empty(out.size[0], np.int64), 0
    above = world.queues.usage.held[c, top] - world.division.fair[c, top]
    for k in range(out.size[0] - 1, -1, -1):
        v = out.order[k]
        if above <= EPS:
            break
        if _gives_way(out, work, v, c) and is_below(world.tree, work.queue[v], top):
            who[size] = v
            size += 1
            above -= out.members[v] * work.need[GPUS, v]
    return who[:size]


@inner
def entitles_somebody(world: Session, since: int) -> bool:
    """Whether a start from decision ``since`` on passes its share in a class of which somebody waits who may
    reclaim: it may be entitled to what that queue runs.
    """
    out, lifted = world.out, np.zeros(world.queues.reservations.slot.size, np.bool_)
    for k in range(since, out.size[0]):
        v, c = out.order[k], out.gpu_class[out.order[k]]
        if out.action[v] != codes.ADMIT and out.reason[v] != codes.AWAITS_VICTIMS:
            continue
        q = world.work.queue[v]
        over = levels_over(world.tree, world.queues, world.division, q, c, 0)
        lifted[c] = lifted[c] or over > 0
    return bool(lifted.any()) and _anybody_may_reclaim(world, lifted)


@once
def _anybody_may_reclaim(world: Session, among: Flags) -> bool:
    """Whether somebody waits of whom a part at most passes the share of its queue in a class ``among`` those
    that it accepts.
    """
    pending, work = world.ordering.pending, world.work
    for k in range(pending.size[0]):
        v = pending.slot[k]
        for i in range(work.wish.shape[0] if world.out.action[v] == codes.WAIT else 0):
            c = work.wish[i, v]
            if c < 0:
                break
            if among[c] and _may_reclaim(world, v, c):
                return True
    return False


@inner
def _may_reclaim(world: Session, v: int, c: int) -> bool:
    q, need = world.work.queue[v], need_of(world, v)
    return bool(rounded_reach(world.tree, world.queues, world.division, q, c, need) != q)
