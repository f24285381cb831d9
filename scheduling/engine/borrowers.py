"""Entitlement over loans of this very cycle.

Who starts above the share of its queue before a gang passes its own is no prey until the next cycle,
whose plan may take it back for that gang, if lower priority leaves beside (law 4). Where the gang gets
inside its share without such borrowers, they step back at once and are asked again.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission import need_of
from scheduling.engine.arrays import EPS, GPUS, Ints
from scheduling.engine.compiled import inner, once
from scheduling.engine.precedence import (
    BEGUN,
    LEFT,
    TRIED,
    ask_again,
    fails_again,
    free_at_most,
    note_in_vain,
    preempting,
    take,
)
from scheduling.engine.prey import UNRATED
from scheduling.engine.prospects import forget_failures, may_be_entitled
from scheduling.engine.rooming import make_room_below, see_prey
from scheduling.engine.standing import common_ancestor, levels_over
from scheduling.engine.trial import DONE, try_class
from scheduling.engine.world import World

MOST_TRIALS, MOST_BORROWERS = 3, 64
"""In one cycle, and of those who started last in one trial: these bound a cycle's time."""


@inner
def goes_before_borrowers(world: World, w: int, c: int) -> bool:
    """Whether ``w`` starts, or makes room, on class ``c`` once those who borrow step back for it."""
    if not _may_go_first(world, w, c):
        return False
    who, gpus = _borrowers(world, w, c)
    if gpus == 0 or free_at_most(world, w, c) + gpus < need_of(world, w):
        return False
    rated = world.prey.rated[0]
    world.book.rounds[TRIED] += 1
    for v in who:
        take(world, v, -world.out.members[v])
    if not _gets_inside(world, w, c, _meet(world, w, who)):
        for v in who:
            take(world, v, world.out.members[v])
        if world.prey.rated[0] < rated:  # Nodes were rated while their queues held less.
            world.prey.rated[0] = UNRATED
        note_in_vain(world, w, c)
        return False
    forget_failures(world, c)
    ask_again(world, w, c, who)
    for v in who:
        try_class(world, v, c, 0)
    return True


@once
def _may_go_first(world: World, w: int, c: int) -> bool:
    """Who is inside its share anyway was asked before anybody borrowed what is free."""
    q, need = world.work.queue[w], need_of(world, w)
    if levels_over(world.tree, world.book, world.division, q, c, need) == 0:
        return False
    rounds = world.book.rounds
    if rounds[BEGUN] == 0 or rounds[LEFT] == 0 or rounds[TRIED] == MOST_TRIALS:
        return False
    see_prey(world)
    return may_be_entitled(world, preempting(world, w, c)) and not fails_again(world, w, c)


@once
def _borrowers(world: World, w: int, c: int) -> tuple[Ints, int]:
    """Who starts on class ``c`` in queues above their shares, up to where ``w`` is as well, the last first,
    and their milli-GPU; not those who were promised their GPUs, for whom others left, or who stepped back
    before.
    """
    out, work, started = world.out, world.work, world.book.rounds[BEGUN]
    who, size, gpus = np.empty(MOST_BORROWERS, np.int64), 0, 0
    for k in range(started - 1, -1, -1):
        v = out.begun[k]
        if size == MOST_BORROWERS:
            break
        if out.action[v] != codes.ADMIT or out.gpu_class[v] != c or out.served[v] or work.claims[v]:
            continue
        stays = out.stepped_back[v] or not world.ranks.preemptible[work.priority[v]]
        if not stays and _is_above(world, v, w):
            who[size] = v
            size += 1
            gpus += out.members[v] * work.need[GPUS, v]
    return who[:size], gpus


@once
def _is_above(world: World, v: int, w: int) -> bool:
    """Every queue of ``v``, which starts, below the first that ``w`` is in as well is above its share."""
    q, c = world.work.queue[v], world.out.gpu_class[v]
    meet = common_ancestor(world.tree, q, world.work.queue[w])
    if q == meet:
        return False
    while q != meet:
        if world.book.held[c, q] <= world.division.fair[c, q] + EPS:
            return False
        q = world.tree.parent[q]
    return True


@once
def _meet(world: World, w: int, who: Ints) -> int:
    """The lowest queue that ``w`` and all of ``who`` are in."""
    meet = world.work.queue[w]
    for v in who:
        meet = common_ancestor(world.tree, world.work.queue[v], meet)
    return int(meet)


@once
def _gets_inside(world: World, w: int, c: int, meet: int) -> bool:
    """``w`` starts inside its share, or gets there by making room below ``meet``."""
    q, refused = world.work.queue[w], world.prey.refused
    failed, refused[c, q] = refused[c, q], -1
    if try_class(world, w, c, 0) == DONE or make_room_below(world, w, c, meet):
        return True
    refused[c, q] = failed
    return False
