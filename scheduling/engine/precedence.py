"""Priority inside a leaf over what has started in this very cycle.

A gang that passes its share is asked after everybody inside it, so lower priority of its queue may have
started before. That is no prey until the next cycle, whose plan would preempt it (law 4). Where the gang
starts or makes room without it, it steps back at once and is asked again.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission import need_of
from scheduling.engine.arrays import GPUS, Flags, Ints
from scheduling.engine.compiled import inner, once
from scheduling.engine.limits import book_start
from scheduling.engine.record import decide, tell_start, withdraw
from scheduling.engine.seating import occupy
from scheduling.engine.standing import charge
from scheduling.engine.world import World

LEFT, STEPPED_BACK = 0, 1
"""In ``book.rounds``: how many rounds follow in this cycle; whether somebody has to be asked again."""


@inner
def step_back(world: World, w: int, c: int) -> Ints:
    """Take back the starts on class ``c`` of lower priority in the queue of ``w``; returns whose, none if
    they would not do or no round is left to ask them again.
    """
    book, q = world.book, world.work.queue[w]
    if book.begun[c, q] == 0 or book.rounds[LEFT] == 0:
        return np.empty(0, np.int64)
    who, gpus = _begun_below(world, w, c)
    if gpus == 0 or _free_at_most(world, w, c) + gpus < need_of(world, w):
        return who[:0]
    for v in who:
        members = world.out.members[v]
        _take(world, v, -members)
        withdraw(world.out, v)
        world.out.noted[v] = False
        world.out.action[v] = world.out.reason[v] = codes.UNDECIDED
        world.out.members[v] = members
    return who


@inner
def start_again(world: World, who: Ints) -> None:
    """Undo ``step_back``."""
    out = world.out
    for v in who:
        _take(world, v, out.members[v])
        decide(out, v, codes.ADMIT, codes.UNDECIDED, out.gpu_class[v], out.members[v])
        tell_start(world, v, out.gpu_class[v])


@once
def _begun_below(world: World, w: int, c: int) -> tuple[Ints, int]:
    """Who started in the queue of ``w`` on class ``c`` at a lower priority, and their milli-GPU.

    But for those who were promised their GPUs, for whom others left, or who use what is reserved.
    """
    out, work, value = world.out, world.work, world.ranks.value
    served, who = _served(world), np.empty(out.used[0], np.int64)
    size, gpus = 0, 0
    for k in range(out.used[0]):
        v = out.order[k]
        if out.action[v] != codes.ADMIT or out.gpu_class[v] != c or work.queue[v] != work.queue[w]:
            continue
        p = work.priority[v]
        below = value[p] < value[work.priority[w]] and world.line.rank[v] < world.line.rank[w]
        if not below or not world.ranks.preemptible[p]:
            continue
        backfills = world.book.holder[c] >= 0 and work.predicted_p90[v] < np.inf
        if work.claims[v] or served[v] or backfills:
            continue
        who[size] = v
        size += 1
        gpus += out.members[v] * work.need[GPUS, v]
    return who[:size], gpus


@once
def _served(world: World) -> Flags:
    """For whom others leave."""
    out, found = world.out, np.zeros(world.work.phase.size, np.bool_)
    for k in range(out.used[0]):
        v = out.order[k]
        if out.action[v] in (codes.EVICT, codes.SHRINK, codes.MOVE) and out.rival[v] >= 0:
            found[out.rival[v]] = True
    return found


@once
def _free_at_most(world: World, w: int, c: int) -> int:
    """Milli-GPU of class ``c`` that are free, come free, or could be taken from lower priority that ran."""
    q, value, mass = world.work.queue[w], world.ranks.value, world.prey.mass
    free = world.room.open[c] + world.room.coming[c]
    for p in range(value.size):
        if value[p] < value[world.work.priority[w]]:
            free += mass[0, c, q, p] + mass[1, c, q, p]
    return free


@inner
def _take(world: World, v: int, members: int) -> None:
    """``v`` takes its seats, or (negative) gives them back."""
    out, work, c = world.out, world.work, world.out.gpu_class[v]
    for i in range(out.first[v], out.first[v] + abs(members)):
        one = 1 if members > 0 else -1
        occupy(world.room, work, v, out.pool_node[i], out.pool_device[i], one)
    gpus = members * work.need[GPUS, v]
    world.room.open[c] -= gpus
    world.book.begun[c, work.queue[v]] += gpus
    charge(world, v, c, members, False)
    book_start(world, v, 1 if members > 0 else -1)
