"""One cycle: the numbered steps from what is to what is decided.

1. Evict what must leave whatever happens: drained queues, stale gangs.
2. Seat workloads whose victims left for them in an earlier cycle.
3. Pass by pass, let the neediest queue's next workload try, until none is left. In pass p it may start
   if that lifts its queues above fair share at no more than p levels of the tree, so nobody borrows
   before everybody inside the share was asked. It
   a. starts on what is free now,
   b. or claims what is about to come free,
   c. or makes room: moves others on any class, else shrinks or evicts them,
   d. or waits, with a reason. A gang that its share could hold keeps its turn in the queue, and the
      first such gang of a class that is owed its GPUs keeps free nodes (``turns``, ``reserve``).
4. Where somebody left, a turn was kept or shares have changed, ask those who wait once more, as the next
   cycle would: a plan leaves nothing to do to a second one (law 4). What left is borrowed no sooner.
5. Elastic gangs grow into what is left.
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.admission import need_of
from scheduling.engine.arrays import BEGUN, GPUS, LEFT, MIXED, MOVED, STEPPED_BACK, STRETCHED, TRIED
from scheduling.engine.blame import conclude
from scheduling.engine.changed import EVERY, TURNS, changed
from scheduling.engine.compiled import inner, once
from scheduling.engine.growth import grow_all
from scheduling.engine.kept_room import keeps_off, tell_kept_off
from scheduling.engine.limits import full_queue, user_limit
from scheduling.engine.line import PROMISED, SHORT, forget_leads, next_in_line
from scheduling.engine.merit import begin_by_merit, by_merit, line_up_by_merit, next_by_merit
from scheduling.engine.prey import gpus_of, work_lost
from scheduling.engine.promised import seat_the_promised
from scheduling.engine.record import evict, quote
from scheduling.engine.refusals import (
    note_cells,
    note_refusal,
    refused_alike,
    tell_the_like,
)
from scheduling.engine.reserve import reserve
from scheduling.engine.rounds import reopen, stirred
from scheduling.engine.sharing import share_out_again
from scheduling.engine.spared import spare_the_needless
from scheduling.engine.standing import levels_over, neediest
from scheduling.engine.statement import release
from scheduling.engine.trial import DONE, NOT_YET, REFUSED, try_class
from scheduling.engine.turns import ahead_of, forget_open_turns, give_up_turn, keep_turn
from scheduling.engine.ways import gets_room, others_move, takes_what_is_its_own
from scheduling.engine.world import World

MOST_ROUNDS = 8
"""Each round acts on somebody, so rounds end; this bounds a cycle's time."""


@once
def decide_all(world: World) -> None:
    evict_the_unwanted(world)
    seat_the_promised(world)
    note_cells(world)
    line_up_by_merit(world)
    rounds = world.book.rounds
    for counted in (MOVED, BEGUN, TRIED, STRETCHED, MIXED):
        rounds[counted] = 0
    for again in range(MOST_ROUNDS - 1, -1, -1):
        before = world.out.used[0]
        world.book.rounds[LEFT], world.book.rounds[STEPPED_BACK] = again, 0
        world.room.came[:] = world.room.coming
        _ask_all(world)
        spare_the_needless(world, before)
        if again == 0 or not (share_out_again(world) or stirred(world, before)):
            break
        reopen(world)
    tell_the_like(world)
    grow_all(world)


@inner
def _ask_all(world: World) -> None:
    """Step 3; the pass before the first is for those in step 2 whose seats do not hold."""
    line, action, claims = world.line, world.out.action, world.work.claims
    item, skip = line.item, line.skip
    deepest = world.tree.depth.max()
    for turn in range(-1, deepest + 1):
        open_ones = 0
        if turn < 0 and line.count[PROMISED] == 0:
            continue
        for k in range(line.count[0]):
            w = item[k]
            decided = action[w] != codes.UNDECIDED
            skip[k] = decided or (turn < 0 and not claims[w])
            open_ones += not skip[k]
        if open_ones > 0:
            _one_pass(world, turn)


@inner
def evict_the_unwanted(world: World) -> None:
    """Step 1. Draining spares nobody; a gang is stale below its least members past the grace."""
    work, rules, line = world.work, world.rules, world.line
    if line.count[SHORT] == 0 and not _drains(world):
        return
    for k in range(line.runs[2], line.count[2]):
        w = line.running[k]
        if work.leaving[w]:
            continue
        short = work.members[w] < work.least[w]
        stale = short and rules.now >= work.stale[w] + rules.grace
        if world.tree.stop[work.queue[w]] == codes.DRAINS:
            evict(world, w, codes.DRAINED)
        elif stale:
            evict(world, w, codes.STALE_GANG)
        else:
            continue
        release(world, w)
        world.out.lost[w] = work_lost(work, w, work.members[w], rules.now)
        age = rules.now - work.stale[w] if stale else 0.0
        quote(world.out, w, work.queue[w], work.members[w], work.least[w], age, gpus_of(work, w))


@once
def _drains(world: World) -> bool:
    for q in range(world.tree.stop.size):
        if world.tree.stop[q] == codes.DRAINS:
            return True
    return False


@inner
def _one_pass(world: World, turn: int) -> None:
    """Ask every workload but those at the positions to ``line.skip`` once, the neediest queue first."""
    line, tree, left = world.line, world.tree, world.line.left
    _line_up(world)
    forget_open_turns(world)
    changed(world, TURNS, EVERY, EVERY)
    leaf, stirs = 0, True
    while left[0] > 0:
        # Who is neediest stays so until somebody starts or its line is empty.
        if stirs:
            forget_leads(line)
        if stirs or left[leaf] == 0:
            leaf = neediest(tree, world.book, left)
            if tree.top[leaf] < 0 and 0 <= turn < lowest_pass(world, leaf):
                _count(world, left, tree.parent[leaf], -1)
                left[leaf] = 0
                continue
        k = _next(world, leaf)
        stirs = consider(world, line.item[k], line.cell[k], turn)
        q = world.work.queue[line.item[k]]
        left[q] -= 1
        if left[q] == 0:
            _count(world, left, tree.parent[q], -1)


@once
def _next(world: World, q: int) -> int:
    """The place in line of who goes next in the leaf ``q``, or below it where that gives out by merit."""
    if world.tree.top[q] >= 0:
        return next_by_merit(world, q)
    return next_in_line(world.line, world.work, world.book, q, world.rules.shortest)


@once
def _line_up(world: World) -> None:
    """Count ``line.left``, the workloads of leaves and, above them, the leaves that have any; every group
    begins.
    """
    line, tree, left = world.line, world.tree, world.line.left
    start, skip, at = line.start, line.skip, line.at
    for q in range(left.size):
        left[q] = 0
    for q in range(left.size):
        for k in range(start[line.leaf[q]], start[line.leaf[q + 1]]):
            left[q] += not skip[k]
        if left[q] > 0 and tree.kid_start[q] == tree.kid_start[q + 1]:
            _count(world, left, tree.parent[q], 1)
    for g in range(line.leaf[left.size]):
        at[g] = start[g]
    begin_by_merit(world)


@inner
def lowest_pass(world: World, leaf: int) -> int:
    """The first pass in which anybody of ``leaf`` may start: before it nobody there has to be asked."""
    lowest, need = world.tree.depth[leaf], world.line.fewest[leaf]
    for c in range(world.book.held.shape[0]):
        lowest = min(lowest, levels_over(world.tree, world.book, world.division, leaf, c, need))
    return lowest


@once
def _count(world: World, left: object, q: int, one: int) -> None:
    while q >= 0:
        left[q] += one  # type: ignore[index]
        q = world.tree.parent[q]


@once
def consider(world: World, w: int, cell: int, turn: int) -> bool:
    """Step 3 for one workload; it stays undecided if a later pass may do better, or as the like of one
    that was refused.

    Returns whether the queues stand differently now.
    """
    if turn >= 0 and _stops_at_a_limit(world, w):
        return False
    if refused_alike(world, w, cell):
        return False
    state = _try_all(world, w, turn if turn >= 0 else world.tree.depth.max())
    if state == DONE:
        return True
    if state == NOT_YET and turn >= 0 and takes_what_is_its_own(world, w, turn):
        return True
    if state == NOT_YET or turn < 0:
        note_refusal(world, w, False)
        return False
    return _refused(world, w, turn)


@inner
def _refused(world: World, w: int, turn: int) -> bool:
    """Steps c and d."""
    work = world.work
    first, ahead = -1, -1
    if world.rules.max_moves > 0 and others_move(world, w):
        give_up_turn(world, w)
        return True
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        before = ahead_of(world, w, c)
        if before >= 0:
            ahead = before if ahead < 0 else ahead
            continue
        if gets_room(world, w, c, turn):
            give_up_turn(world, w)
            return True
        first = c if first < 0 else first
    if world.out.action[w] == codes.UNDECIDED:
        conclude(world, w, first if first >= 0 else work.wish[0, w], ahead if first < 0 else -1)
        if world.merit.kept_off[w]:
            tell_kept_off(world, w, first)
            return False
    if first < 0 or not _hold_on(world, w, first):
        note_refusal(world, w, True)
    return False


@once
def _hold_on(world: World, w: int, c: int) -> bool:
    """A gang that waits for room on class ``c`` keeps its turn; owed the GPUs, it keeps nodes too, and
    others have fewer to choose from. Returns whether it does.
    """
    keep_turn(world, w)
    if by_merit(world, w):
        return False
    reason = world.out.reason[w]
    if reason in (
        codes.AT_LIMIT,
        codes.NON_PREEMPTIBLE,
        codes.WAITS_FOR_QUOTA,
        codes.HOURS_SPENT,
    ):
        return False
    need = world.work.least[w] * world.work.need[GPUS, w]
    over = levels_over(world.tree, world.book, world.division, world.work.queue[w], c, need)
    owed = over == 0 and need >= 1000 and world.book.holder[c] < 0
    return owed and reserve(world, w, c)


@once
def _stops_at_a_limit(world: World, w: int) -> bool:
    """At a limit on workloads or users it waits: nobody is displaced for it, and others pass it."""
    if full_queue(world, w) < 0 and user_limit(world, w, need_of(world, w)) < 0:
        return False
    conclude(world, w, world.work.wish[0, w], -1)
    return True


@inner
def _try_all(world: World, w: int, turn: int) -> int:
    """Steps a and b on each class in order of preference."""
    work, state = world.work, REFUSED
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        if ahead_of(world, w, c) >= 0:
            if turn < world.tree.depth.max():
                state = NOT_YET
            continue
        if keeps_off(world, w, c):
            continue
        now = try_class(world, w, c, turn)
        if now == DONE:
            give_up_turn(world, w)
            return DONE
        if now == NOT_YET:
            state = NOT_YET
    if state == NOT_YET:
        keep_turn(world, w)
    return state
