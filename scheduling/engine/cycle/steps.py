"""One cycle: the numbered steps from what is to what is decided.

1. Evict what must leave whatever happens: drained queues, stale gangs.
2. Seat those with a claim: others leave, or left, for them by an earlier plan (``promise``).
3. Pass by pass, let the neediest queue's next workload try, until none is left. In pass p it may start
   if that lifts its queues above fair share at no more than p levels of the tree, so nobody borrows
   before everybody inside the share was asked. It
   a. starts on what is free now,
   b. or claims what is about to come free,
   c. or makes room: moves others on any class, else shrinks or evicts them,
   d. or waits, with a reason. A gang that its share could hold keeps its turn in the queue, and the first
      submitted of such gangs of a class that are owed its GPUs keeps free nodes (``turns``, ``reserve``).
4. Whose claim the next cycle would turn into a start at once starts now. Where anybody started, claims room
   or left, or shares have changed, ask those who wait once more, as the next cycle would: a plan leaves
   nothing to do to a second one (law 4). What left is borrowed no sooner.
5. Say of those that wait what others would leave for, were a rule waived (``what_bars``).
6. Elastic gangs grow into what is left.
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.admission.kept_room import is_kept_for_short, tell_kept_for_short
from scheduling.engine.admission.promise import seat_the_promised, start_the_promised
from scheduling.engine.admission.reserve import (
    forget_reservation,
    hold_nodes_again,
    let_nodes_go,
    let_nodes_of,
    reserve,
    restore_reservation,
)
from scheduling.engine.admission.trial import DONE, NOT_YET, REFUSED, try_class
from scheduling.engine.admission.turns import (
    ahead_of,
    clear_turns,
    forget_open_turns,
    give_up_turn,
    keep_turn,
)
from scheduling.engine.compile.kernel import inner
from scheduling.engine.cycle.grow import grow_all
from scheduling.engine.division.share_out import share_out_again
from scheduling.engine.eviction.carry_out import (
    evict_the_unwanted,
    keep_their_seats,
    spare_the_needless,
)
from scheduling.engine.eviction.giving_way import clear_searches_by_merit
from scheduling.engine.eviction.ways import gets_room, others_move, takes_what_is_its_own
from scheduling.engine.eviction.what_bars import tell_what_bars, tell_what_bars_all
from scheduling.engine.explain.diagnose import conclude
from scheduling.engine.order.by_merit import (
    begin_by_merit,
    by_merit,
    line_up_by_merit,
    next_by_merit,
)
from scheduling.engine.order.pending import next_workload, note_usage_changed
from scheduling.engine.order.queues import count_up, neediest
from scheduling.engine.order.refusals import note_cells, note_refusal, refused_alike
from scheduling.engine.placement.node_room import begin_round
from scheduling.engine.quota.standing import (
    STARTS,
    USER_FULL,
    past_shares,
    past_shares_of,
    standing,
)
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Tree, Work, need_of
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.order import Ordering
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.session import Session
from scheduling.engine.statement.lines import (
    EVERY,
    TURNS,
    changed,
    close_order,
    share_lines,
    take_back,
    undecide,
)

MOST_ROUNDS = 8
"""Each round acts on somebody, so rounds end; this bounds a cycle's time."""


@inner
def decide_all(world: Session) -> None:
    queues, out = world.queues, world.out
    evict_the_unwanted(world)
    seat_the_promised(world)
    keep_their_seats(world)
    share_out_again(world)
    note_cells(world.work, world.rules, world.ordering, world.shapes)
    line_up_by_merit(world)
    clear_searches_by_merit(world.tree, world.candidates.merit)
    rounds = queues.round
    rounds.moves = rounds.starts = rounds.trials = rounds.stretched = rounds.mixed = 0
    for again in range(MOST_ROUNDS - 1, -1, -1):
        before = out.size[0]
        queues.round.left, queues.round.asks_again = again, 0
        begin_round(world.room)
        _ask_all(world)
        spare_the_needless(world, before)
        some = again > 0 and start_the_promised(world)
        if again == 0 or not (
            share_out_again(world) or must_ask_again(queues, out, before) or some
        ):
            break
        reopen_waits(world.work, world.room, queues, out)
    tell_what_bars_all(world)
    share_lines(world)
    grow_all(world)


@inner
def _ask_all(world: Session) -> None:
    """Step 3."""
    ordering, action = world.ordering, world.out.action
    item, skip = ordering.pending.slot, ordering.walk.skip
    deepest = world.tree.depth.max()
    for turn in range(deepest + 1):
        open_ones = 0
        for k in range(ordering.pending.size[0]):
            skip[k] = action[item[k]] != codes.UNDECIDED
            open_ones += not skip[k]
        if open_ones > 0:
            _one_pass(world, turn)


@inner
def _one_pass(world: Session, turn: int) -> None:
    """Ask every workload but those at the positions to ``walk.skip`` once, the neediest queue first."""
    division, queues = world.division, world.queues
    ordering, tree, left = world.ordering, world.tree, world.ordering.walk.left
    _begin_pass(tree, ordering)
    forget_open_turns(queues, world.out)
    changed(world.candidates, world.shapes, TURNS, EVERY, EVERY)
    leaf, stirs = 0, True
    while left[0] > 0:
        # The neediest queue stays so until somebody starts or its line is empty.
        if stirs:
            note_usage_changed(ordering)
        if stirs or left[leaf] == 0:
            leaf = neediest(tree, queues, left)
            by_share = not by_merit(tree, leaf)
            if by_share and turn < lowest_pass(tree, division, queues, ordering, leaf):
                count_up(tree, left, tree.parent[leaf], -1)
                left[leaf] = 0
                continue
        if by_merit(tree, leaf):
            k = next_by_merit(ordering, leaf)
        else:
            k = next_workload(ordering, world.work, queues, leaf, world.rules.shortest)
        stirs = consider(world, ordering.pending.slot[k], ordering.pending.cell[k], turn)
        q = world.work.queue[ordering.pending.slot[k]] if by_merit(tree, leaf) else leaf
        left[q] -= 1
        if left[q] == 0:
            count_up(tree, left, tree.parent[q], -1)


@inner
def _begin_pass(tree: Tree, ordering: Ordering) -> None:
    """Count ``walk.left``, the workloads of leaves and, above them, the leaves that have any; every group
    begins.
    """
    left = ordering.walk.left
    start, skip, at = ordering.pending.group_begin, ordering.walk.skip, ordering.walk.cursor
    begin = ordering.pending.queue_begin
    for q in range(left.size):
        left[q] = 0
    for q in range(left.size):
        for k in range(start[begin[q]], start[begin[q + 1]]):
            left[q] += not skip[k]
        if left[q] > 0 and tree.kid_start[q] == tree.kid_start[q + 1]:
            count_up(tree, left, tree.parent[q], 1)
    for g in range(begin[left.size]):
        at[g] = start[g]
    begin_by_merit(ordering.merit)


@inner
def lowest_pass(
    tree: Tree, division: Division, queues: Queues, ordering: Ordering, leaf: int
) -> int:
    """The first pass in which anybody of ``leaf`` may start: before it nobody there has to be asked."""
    lowest, need = tree.depth[leaf], ordering.pending.smallest_ask[leaf]
    for c in range(queues.usage.gpus.shape[0]):
        lowest = min(lowest, past_shares(tree, queues, division, leaf, c, need)[0])
    return lowest


@inner
def consider(world: Session, w: int, cell: int, turn: int) -> bool:
    """Step 3 for one workload; it stays undecided if a later pass may do better, or as the like of one
    that was refused.

    Returns whether the queues stand differently now.
    """
    if _stops_at_a_limit(world, w):
        return False
    if refused_alike(world.work, world.shapes, w, cell):
        return False
    state = _try_all(world, w, turn)
    if state == DONE:
        return True
    if state == NOT_YET and takes_what_is_its_own(world, w, turn):
        return True
    if state == NOT_YET:
        note_refusal(world.work, world.shapes, w, False)
        return False
    return _refused(world, w, turn)


@inner
def _refused(world: Session, w: int, turn: int) -> bool:
    """Steps c and d."""
    shapes, work = world.shapes, world.work
    first, ahead = -1, -1
    if world.rules.max_moves > 0 and others_move(world, w):
        give_up_turn(work, world.queues, world.candidates, shapes, w)
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
            give_up_turn(work, world.queues, world.candidates, shapes, w)
            return True
        first = c if first < 0 else first
    conclude(world, w, first if first >= 0 else work.wish[0, w], ahead if first < 0 else -1)
    if tell_kept_for_short(world, w):
        return False
    if first < 0 or not _hold_on(world, w, first, turn):
        note_refusal(work, shapes, w, True)
    return False


@inner
def _hold_on(world: Session, w: int, c: int, turn: int) -> bool:
    """A gang that waits for room on class ``c`` keeps its turn; owed the GPUs, it keeps nodes too, and
    others have fewer to choose from. Of several the one that was submitted first does, whichever is tried
    first: so it is the same one in the next plan. Returns whether it does.
    """
    keep_turn(world, w)
    if by_merit(world.tree, world.work.queue[w]):
        return False
    need = need_of(world.work, w)
    if need < 1000 or past_shares_of(world, w, c, need)[0] > 0:
        return False
    holder = world.queues.reservations.slot[c]
    if holder >= 0 and world.work.submitted[holder] <= world.work.submitted[w]:
        return False
    tell_what_bars(world, w, c)
    reason = world.out.reason[w]
    if reason in (codes.AT_LIMIT, codes.NON_PREEMPTIBLE, codes.WAITS_FOR_QUOTA, codes.HOURS_SPENT):
        return False
    return reserve(world, w, c) if holder < 0 else _takes_nodes_over(world, w, c, turn)


@inner
def _takes_nodes_over(world: Session, w: int, c: int, turn: int) -> bool:
    """From a gang that came later, which waits like any other then. It starts, or makes room, if their nodes
    are enough for that.
    """
    work, room, queues, out = world.work, world.room, world.queues, world.out
    holder = queues.reservations.slot[c]
    let_nodes_of(work, room, queues, out, c)
    members = queues.reservations.members[c]
    forget_reservation(queues, c)
    if try_class(world, w, c, turn) == DONE or _gets_room_now(world, w, c, turn):
        give_up_turn(work, queues, world.candidates, world.shapes, w)
    else:
        conclude(world, w, c, -1)
        tell_what_bars(world, w, c)
        if not reserve(world, w, c):
            restore_reservation(queues, c, holder, members)
            hold_nodes_again(work, room, queues, out, c)
            _conclude_again(world, w, c)
            return False
    if out.reason[holder] == codes.RESERVED:
        _conclude_again(world, holder, c)
    else:
        out.action[holder] = codes.WAIT
    return True


@inner
def _gets_room_now(world: Session, w: int, c: int, turn: int) -> bool:
    """Whether it makes room where it did not while those nodes were kept."""
    take_back(world.out, w)
    world.candidates.failed.slot[c, world.work.queue[w]] = -1
    return bool(gets_room(world, w, c, turn))


@inner
def _conclude_again(world: Session, w: int, c: int) -> None:
    take_back(world.out, w)
    conclude(world, w, c, -1)


@inner
def _stops_at_a_limit(world: Session, w: int) -> bool:
    """At a limit on workloads or users it waits: nobody is displaced for it, and others pass it."""
    work = world.work
    if world.queues.limits.any == 0:
        return False
    stands = standing(world, w, work.wish[0, w], need_of(work, w), STARTS)
    if stands.says < USER_FULL:
        return False
    conclude(world, w, work.wish[0, w], -1)
    return True


@inner
def _try_all(world: Session, w: int, turn: int) -> int:
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
        if is_kept_for_short(world, w, c):
            continue
        now = try_class(world, w, c, turn)
        if now == DONE:
            give_up_turn(work, world.queues, world.candidates, world.shapes, w)
            return DONE
        if now == NOT_YET:
            state = NOT_YET
    if state == NOT_YET:
        keep_turn(world, w)
    return state


@inner
def must_ask_again(queues: Queues, out: Decisions, since: int) -> bool:
    """Whether a decision from number ``since`` on acts, or somebody stepped back: queues hold then what they
    did not when those before were refused.
    """
    for k in range(since, out.size[0]):
        if not _only_waits(out, out.order[k]):
            return True
    return bool(queues.round.asks_again)


@inner
def _only_waits(out: Decisions, w: int) -> bool:
    """It holds and claims nothing, but for nodes that are kept."""
    keeps = out.action[w] == codes.RESERVE and out.reason[w] != codes.AWAITS_VICTIMS
    return bool(keeps or out.action[w] == codes.WAIT)


@inner
def reopen_waits(work: Work, room: NodeRoom, queues: Queues, out: Decisions) -> None:
    """Take back what was decided on those who wait, and what is kept for them."""
    let_nodes_go(work, room, queues, out)
    for k in range(out.size[0]):
        w = out.order[k]
        if _only_waits(out, w):
            undecide(out, w)
    close_order(out)
    clear_turns(queues)
