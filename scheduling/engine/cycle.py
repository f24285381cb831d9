"""One cycle: the numbered steps from what is to what is decided.

1. Evict what must leave whatever happens: drained queues, stale gangs.
2. Seat workloads whose victims left for them in an earlier cycle.
3. Pass by pass, let the neediest queue's next workload try, until none is left. In pass p it may start
   if that lifts its queues above fair share at no more than p levels of the tree, so nobody borrows
   before everybody inside the share was asked. It
   a. starts on what is free now,
   b. or claims what is about to come free,
   c. or reclaims across queues, or preempts inside its own,
   d. or waits, with a reason. Owed its GPUs, it keeps its turn in the queue; the first such gang of a
      class also keeps free GPUs.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission import fills_what_leaves, give_up_turn, need_of, quota_allows
from scheduling.engine.arrays import EPS, GPUS, LATER, NOW, RUNNING, Flags
from scheduling.engine.blame import conclude
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import release
from scheduling.engine.line import next_in_line
from scheduling.engine.placement import place
from scheduling.engine.prey import gpus_of, work_lost
from scheduling.engine.promised import seat_the_promised
from scheduling.engine.record import admit, evict, promise, quote
from scheduling.engine.reserve import hold_nodes
from scheduling.engine.rooming import make_room
from scheduling.engine.standing import (
    levels_over,
    neediest,
)
from scheduling.engine.world import World

DONE, REFUSED, NOT_YET = 0, 1, 2


@once
def decide_all(world: World) -> None:
    """Steps 1 to 3; the pass before the first is for those in step 2 whose seats do not hold."""
    evict_the_unwanted(world)
    seat_the_promised(world)
    skip = np.ones(world.work.phase.size, np.bool_)
    deepest = world.tree.depth.max()
    for turn in range(-1, deepest + 1):
        open_ones = 0
        for w in world.line.item:
            decided = world.out.action[w] != codes.UNDECIDED
            skip[w] = decided or (turn < 0 and not world.work.claims[w])
            open_ones += not skip[w]
        if open_ones > 0:
            _one_pass(world, turn, skip)


@inner
def evict_the_unwanted(world: World) -> None:
    """Step 1. Draining spares nobody; a gang is stale below its least members past the grace."""
    work, rules = world.work, world.rules
    for w in range(work.phase.size):
        if work.phase[w] != RUNNING or work.leaving[w] or work.queue[w] <= 0:
            continue
        short = work.members[w] < work.least[w]
        stale = short and rules.now >= work.stale[w] + rules.grace
        if world.tree.stop[work.queue[w]] == 2:
            evict(world, w, codes.DRAINED)
        elif stale:
            evict(world, w, codes.STALE_GANG)
        else:
            continue
        release(world, w)
        world.out.lost[w] = work_lost(work, w, rules.now)
        age = rules.now - work.stale[w] if stale else 0.0
        quote(world.out, w, work.queue[w], work.members[w], work.least[w], age, gpus_of(work, w))


@inner
def _one_pass(world: World, turn: int, skip: Flags) -> None:
    """Ask every workload not in ``skip`` once, the neediest queue first."""
    line, tree = world.line, world.tree
    left = np.zeros(tree.parent.size, np.int64)
    for w in line.item:
        if not skip[w]:
            q = world.work.queue[w]
            while q >= 0:
                left[q] += 1
                q = tree.parent[q]
    at = line.start.copy()
    _forget_open_turns(world)
    while left[0] > 0:
        leaf = neediest(tree, world.book, left)
        w = next_in_line(line, world.work, world.book, at, skip, leaf)
        consider(world, w, turn)
        q = leaf
        while q >= 0:
            left[q] -= 1
            q = tree.parent[q]


@inner
def _forget_open_turns(world: World) -> None:
    """Turns kept by those that may still start: who comes first is asked afresh in each pass."""
    turn = world.book.turn
    for c in range(turn.shape[0]):
        for q in range(turn.shape[1]):
            if turn[c, q] >= 0 and world.out.action[turn[c, q]] == codes.UNDECIDED:
                turn[c, q] = -1


@once
def consider(world: World, w: int, turn: int) -> None:
    """Step 3 for one workload; it stays undecided if a later pass may do better."""
    state = _try_all(world, w, turn if turn >= 0 else world.tree.depth.max())
    if state != REFUSED or turn < 0:
        return
    work, q = world.work, world.work.queue[w]
    first, ahead = -1, -1
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        before = _ahead_of(world, w, c)
        if before >= 0:
            ahead = before if ahead < 0 else ahead
            continue
        if make_room(world, w, c):
            return
        first = c if first < 0 else first
    if world.out.action[w] == codes.UNDECIDED:
        conclude(world, w, first if first >= 0 else work.wish[0, w], ahead if first < 0 else -1)
    if first < 0:
        return
    _keep_turn(world, w)
    need = work.least[w] * work.need[GPUS, w]
    by_quota = world.out.reason[w] in (
        codes.AT_LIMIT,
        codes.NON_PREEMPTIBLE,
        codes.WAITS_FOR_QUOTA,
    )
    owed = levels_over(world.tree, world.book, world.division, q, first, need) == 0 and not by_quota
    if owed and world.book.holder[first] < 0 and work.need[GPUS, w] >= 1000:
        hold_nodes(world, w, first)


@inner
def _try_all(world: World, w: int, turn: int) -> int:
    """Steps a and b on each class in order of preference."""
    work, q, state = world.work, world.work.queue[w], REFUSED
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        if _ahead_of(world, w, c) >= 0:
            if turn < world.tree.depth.max():
                state = NOT_YET
            continue
        now = _try_class(world, w, c, turn)
        if now == DONE:
            give_up_turn(world, w)
            return DONE
        if now == NOT_YET:
            state = NOT_YET
    if state == NOT_YET and q > 0:
        _keep_turn(world, w)
    return state


@inner
def _try_class(world: World, w: int, c: int, turn: int) -> int:
    """Start on class ``c`` now, or claim what is about to come free."""
    work, q = world.work, world.work.queue[w]
    gpus = work.need[GPUS, w]
    if levels_over(world.tree, world.book, world.division, q, c, work.least[w] * gpus) > turn:
        return NOT_YET
    most = work.most[w]
    while most >= work.least[w] and not quota_allows(world, w, c, most * gpus, turn):
        most -= 1
    if most < work.least[w]:
        return REFUSED
    late = fills_what_leaves(world, q, c, most * gpus)
    for when in (NOW, LATER):
        if (when == NOW and late) or (when == LATER and world.room.coming[c] == 0):
            continue
        members = place(work, world.nodes, world.room, world.rules, world.seats, w, c, most, when)
        if members == 0:
            continue
        if when == NOW:
            admit(world, w, c, members)
        else:
            promise(world, w, c, members)
        return DONE
    return REFUSED


@inner
def _ahead_of(world: World, w: int, c: int) -> int:
    """The workload of the same queue that keeps its turn on class ``c`` and that ``w`` would delay.

    ``w`` may pass only if the share holds both.
    """
    q = world.work.queue[w]
    first = world.book.turn[c, q]
    if first < 0 or first == w:
        return -1
    fixed = not world.ranks.preemptible[world.work.priority[w]]
    if world.out.reason[first] == codes.NON_PREEMPTIBLE and not fixed:
        return -1
    both = need_of(world, first) + need_of(world, w)
    inside = world.book.held[c, q] + both <= world.division.fair[c, q] + EPS
    return -1 if inside else first


@inner
def _keep_turn(world: World, w: int) -> None:
    """A gang that its queue's share could hold goes before what comes after it in the queue."""
    q = world.work.queue[w]
    fixed = not world.ranks.preemptible[world.work.priority[w]]
    for k in range(world.work.wish.shape[0]):
        c = world.work.wish[k, w]
        if c < 0:
            return
        inside = world.division.fair[c, q]
        if fixed:
            inside = min(inside, float(world.quotas.nominal[c, q]))
        if world.book.turn[c, q] < 0 and need_of(world, w) <= inside + EPS:
            world.book.turn[c, q] = w
