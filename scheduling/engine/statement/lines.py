"""Writing decisions down.

What a plan remembers, and what makes it stale: failed searches (``FailedSearches``), what was refused
alike (``Refusals``), what a milli-GPU costs on each node (``NodeBounds``) are dropped by ``changed`` alone.
"""

from __future__ import annotations

from typing import Any

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Flags
from scheduling.engine.reasons.figures import WOULD_LEAVE
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.nodes import Seats
from scheduling.engine.state.order import Ordering, Shapes
from scheduling.engine.state.session import Session
from scheduling.engine.state.victims import UNRATED, Candidates


@inner
def decide(out: Decisions, w: int, action: int, reason: int, c: int, members: int) -> None:
    """One line of the plan. An earlier one is withdrawn: of a wait for another class, of a gang that gives
    up still more.
    """
    if out.listed[w]:
        _withdraw(out, w)
    out.action[w], out.reason[w] = action, reason
    out.gpu_class[w], out.members[w] = c, members
    out.listed[w] = True
    out.order[out.size[0]] = w
    out.size[0] += 1


@inner
def state_last(out: Decisions, w: int) -> None:
    """The line of ``w``, which claims room, comes after those of whoever gives something up for it."""
    blame = out.blame[w]
    decide(out, w, out.action[w], out.reason[w], out.gpu_class[w], out.members[w])
    out.blame[w] = blame


@inner
def undecide(out: Decisions, w: int) -> None:
    """Nothing is decided on ``w``. It is taken out of ``order`` by who calls this, for many at a time."""
    out.action[w] = out.reason[w] = codes.UNDECIDED
    out.rival[w] = out.blame[w] = out.rule[w] = -1
    out.members[w], out.until[w], out.listed[w] = 0, 0.0, False
    out.searches.made[w] = out.searches.barred_by[w] = 0
    for i in range(out.figures.shape[1]):
        out.figures[w, i] = 0.0


@inner
def close_order(out: Decisions) -> None:
    """Nobody without a decision stands in ``order``."""
    count = 0
    for k in range(out.size[0]):
        if out.listed[out.order[k]]:
            out.order[count] = out.order[k]
            count += 1
    out.size[0] = count


@inner
def take_back(out: Decisions, w: int) -> None:
    """Nothing is decided on ``w``, on which something was."""
    _withdraw(out, w)
    undecide(out, w)


@inner
def _withdraw(out: Decisions, w: int) -> None:
    out.rival[w], out.blame[w], out.until[w] = -1, -1, 0.0
    k = out.size[0] - 1
    while out.order[k] != w:
        k -= 1
    out.size[0] -= 1
    for i in range(k, out.size[0]):
        out.order[i] = out.order[i + 1]


@inner
def note_bound(out: Decisions, w: int, searches: int) -> None:
    """A search of a kind of which a cycle makes no more than ``searches`` was not made for ``w``."""
    out.searches.made[w] = searches


@inner
def seat_out(out: Decisions, seats: Seats, w: int, members: int) -> None:
    """Where the members of ``w`` go."""
    at = take_seats(out, w, members)
    for i in range(members):
        out.pool.node[at + i], out.pool.device[at + i] = seats.node[i], seats.device[i]


@inner
def take_seats(out: Decisions, w: int, members: int) -> int:
    """A place in the pool for ``members`` of ``w``. Past its end the plan is void, and made again with a
    larger pool: until then the first places serve all, so that nobody reads or writes past it.
    """
    fits = out.pool.size[0] + members <= out.pool.node.size
    out.pool.first[w] = out.pool.size[0] if fits else 0
    out.pool.size[0] += members
    return out.pool.first[w]


@inner
def recall(out: Decisions, seats: Seats, w: int) -> int:
    """The seats of ``w`` once more; returns how many."""
    for i in range(out.members[w]):
        seats.node[i] = out.pool.node[out.pool.first[w] + i]
        seats.device[i] = out.pool.device[out.pool.first[w] + i]
    return int(out.members[w])


@inner
def clear_out(out: Decisions, candidates: Candidates) -> None:
    """Nothing is decided. Only lines of the plan before are not empty."""
    chosen = candidates.log.leaves
    if _has_most(out):
        for w in range(out.action.size):
            _clear_line(out, chosen, w)
    else:
        for k in range(out.size[0]):
            _clear_line(out, chosen, out.order[k])
    out.size[0] = out.pool.size[0] = 0


@inner
def _has_most(out: Decisions) -> bool:
    """Whether so many have a line that all slots, one after the other, are done sooner than they in order."""
    return bool(out.size[0] > out.action.size // 2)


@inner
def _clear_line(out: Decisions, chosen: Flags, w: int) -> None:
    if out.told_by[w] >= 0:
        out.action[w] = out.reason[w] = out.told_by[w] = codes.UNDECIDED
        out.until[w], out.listed[w], out.searches.barred_by[w] = 0.0, False, 0
    else:
        undecide(out, w)
    out.starts.served[w] = out.starts.withdrawn[w] = chosen[w] = False
    out.lost[w], out.lapsed[w] = 0.0, -1


@inner
def note_the_settled(out: Decisions, ordering: Ordering) -> None:
    """Lines for those settled beforehand come last."""
    item, action, noted = ordering.pending.slot, out.action, out.listed
    for k in range(ordering.pending.size[0]):
        w = item[k]
        if action[w] == codes.WAIT and not noted[w]:
            out.order[out.size[0]] = w
            out.size[0] += 1


@inner
def share_lines(world: Session) -> None:
    """What was refused like another in the last pass gets a line that points to the other's. A delay
    that has still to pass is counted from its own start.
    """
    ordering, out, submitted = world.ordering, world.out, world.work.submitted
    item = ordering.pending.slot
    cell = ordering.pending.cell
    tellers = world.shapes.refusals.told_by
    order = out.order
    action, reason, until, noted = out.action, out.reason, out.until, out.listed
    size, rounds = out.size[0], world.queues.round
    bounded = rounds.stretched + rounds.mixed + rounds.trials > 0
    for k in range(ordering.pending.size[0]):
        w = item[k]
        if action[w] != codes.UNDECIDED:
            continue
        like = tellers[cell[k]]
        action[w], reason[w], until[w] = action[like], reason[like], until[like]
        if (
            reason[w] == codes.VICTIMS_PROTECTED
            and out.figures[like, WOULD_LEAVE.waits_itself] != 0.0
        ):
            until[w] += submitted[w] - submitted[like]
        if bounded:
            out.searches.made[w] = 0
        out.told_by[w], noted[w], order[size] = like, True, w
        size += 1
    out.size[0] = size


@kernel
def copy_shared_lines(world: Any) -> None:
    """Copy what the lines of the like leave out: the same class with the same numbers."""
    out = world.out
    if _has_most(out):
        for w in range(out.told_by.size):
            _copy_line(out, w, out.told_by[w])
    else:
        for k in range(out.size[0]):
            _copy_line(out, out.order[k], out.told_by[out.order[k]])


@inner
def _copy_line(out: Decisions, w: int, like: int) -> None:
    """``w`` is told what ``like`` is, -1 for nobody."""
    if like >= 0:
        out.told_by[w], out.gpu_class[w] = -1, out.gpu_class[like]
        out.rival[w], out.blame[w] = out.rival[like], out.blame[like]
        copy_figures(out, w, like)


@inner
def copy_figures(out: Decisions, w: int, of: int) -> None:
    """``w`` is told the figures of ``of``."""
    out.searches.made[w] = out.searches.made[of]
    for i in range(out.figures.shape[1]):
        out.figures[w, i] = out.figures[of, i]


ROOM, RETURN, SHARES, TURNS, HOLDING, REACH = 0, 1, 2, 3, 4, 5
"""Somebody left a class, moved in it or stepped back; what was to leave it stays; shares are others; a
turn or nodes are kept, or no more; a leaf holds more than it did; a search looks at other candidates than the
one before.
"""
EVERY = -1
"""In place of a class or a leaf."""


@inner
def changed(candidates: Candidates, shapes: Shapes, event: int, c: int, q: int) -> None:
    """``event`` happened in class ``c`` and leaf ``q``."""
    if event != REACH:
        shapes.refusals.change += 1
    if event == HOLDING:
        candidates.bounds.risen[q] = True
        return
    if event in (ROOM, RETURN, SHARES):
        _forget_failures(candidates, c)
    if event != REACH:
        shapes.refusals.epoch += 1
    if event in (RETURN, SHARES, REACH):
        candidates.bounds.rated[0] = UNRATED


@inner
def _forget_failures(candidates: Candidates, c: int) -> None:
    refused = candidates.failed.slot
    for k in range(refused.shape[0]):
        if c in (EVERY, k):
            for q in range(refused.shape[1]):
                refused[k, q] = -1
