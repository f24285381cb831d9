"""Trying what others do for one workload: they leave, give members up, move, or step back from a start of
this very plan, virtually and in a log.

``StatementLog.slot`` and ``part`` are the log, ``mark`` its end. All that was tried since a mark
is undone together, last first; one alone may be undone, and done again, out of order, since room and usage
are sums. A search looks at its own part of the log alone, which begins where those end who step back before
it (``search_on``). What stays in the log is carried out: those who leave, shrink or move by ``search``,
those who step back by ``precedence``.
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.node_room import leave, occupy, stay, take_open
from scheduling.engine.quota.usage import book_start, charge, spend_budget
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Tree, Work, core_of, gpus_of
from scheduling.engine.state.nodes import NodeRoom, Seats
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.roles import (
    FIRST_ROLE,
    WHOLE,
    has_roles,
    needs_segments,
    segment_level,
    segment_size,
    unit_of,
)
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.operations import charge_promise, note_started

LEAVES, MOVES, STEPS_BACK = -1, -2, -3
"""In ``part``, in place of the hold of which a member is given up: the whole gang leaves; it moves; or it
starts, claims seats, or was to move, in this plan and gives its seats back.
"""


@inner
def begin(queues: Queues, candidates: Candidates) -> None:
    """A search has tried nothing yet."""
    candidates.log.size, queues.search.evicted[0] = candidates.log.first, 0


@inner
def search_on(candidates: Candidates) -> None:
    """What has been tried stands, whatever the searches that follow try; until ``search_afresh``."""
    candidates.log.first = candidates.log.size


@inner
def search_afresh(candidates: Candidates) -> None:
    """The searches that follow begin with nothing."""
    candidates.log.first = 0


@inner
def mark(candidates: Candidates) -> int:
    return candidates.log.size


@inner
def let_go(world: Session, v: int) -> None:
    """``v`` leaves."""
    _log(world, v, LEAVES)


@inner
def give_member(world: Session, v: int, h: int) -> None:
    """One member of hold ``h`` is given up."""
    _log(world, v, h)


@inner
def give_some(world: Session, v: int, h: int) -> bool:
    """``v``, which may give a member up, gives one of hold ``h``, of unlike ones all seats of one that begins
    there, or a segment that has one there; whether it did.
    """
    holds, log = world.holds, world.candidates.log
    if log.members_given_on[h] == holds.members[h]:
        return False
    if has_roles(world.work, v):
        return bool(_give_of_role(world, v, h))
    if not needs_segments(world.work, v):
        give_member(world, v, h)
        return True
    nodes, level = world.nodes, segment_level(world.work, v)
    before, home = mark(world.candidates), nodes.domain[level, holds.node[h]]
    end = before + segment_size(world.work, v)
    _give_from(world, v, h, end)
    k = holds.head[v]
    while k >= 0:
        if nodes.domain[level, holds.node[k]] == home:
            _give_from(world, v, k, end)
        k = holds.next[k]
    if log.size == end:
        return True
    undo(world, before)
    return False


@inner
def _give_of_role(world: Session, v: int, h: int) -> bool:
    """A member of the elastic role, if ``h`` has the first seats of such: the others are whole GPUs of its
    node.
    """
    holds, end = world.holds, mark(world.candidates) + unit_of(world.work, v)
    if holds.device[h] != FIRST_ROLE - world.work.elastic_role[v]:
        return False
    give_member(world, v, h)
    k = holds.head[v]
    while k >= 0:
        if holds.node[k] == holds.node[h] and holds.device[k] == WHOLE:
            _give_from(world, v, k, end)
        k = holds.next[k]
    return True


@inner
def _give_from(world: Session, v: int, h: int, end: int) -> None:
    """Members of hold ``h`` are given up until so many are in the log."""
    log = world.candidates.log
    while log.size < end and log.members_given_on[h] < world.holds.members[h]:
        give_member(world, v, h)


@inner
def lift(world: Session, v: int) -> None:
    """``v``, which sits on one node, is about to move; its new seats are in ``out`` once it has any."""
    _log(world, v, MOVES)


@inner
def step_back(world: Session, v: int) -> None:
    """``v``, which starts, claims seats or was to move, gives its seats back."""
    _log(world, v, STEPS_BACK)


@inner
def _log(world: Session, v: int, part: int) -> None:
    candidates, at = world.candidates, world.candidates.log.size
    candidates.log.slot[at], candidates.log.part[at] = v, part
    candidates.log.size += 1
    redo_one(world, at)


@inner
def undo(world: Session, to: int) -> None:
    """All as it was at the mark ``to``."""
    while world.candidates.log.size > to:
        world.candidates.log.size -= 1
        undo_one(world, world.candidates.log.size)


@inner
def undo_all(world: Session) -> None:
    """Whatever the search at work has tried."""
    undo(world, world.candidates.log.first)


@inner
def undo_one(world: Session, k: int) -> None:
    """The ``k``-th stays after all."""
    _do(world, world.candidates.log.slot[k], world.candidates.log.part[k], -1)


@inner
def redo_one(world: Session, k: int) -> None:
    """The ``k``-th does what the log says, once more if that was undone alone."""
    _do(world, world.candidates.log.slot[k], world.candidates.log.part[k], 1)


@inner
def _do(world: Session, v: int, part: int, sign: int) -> None:
    work, holds = world.work, world.holds
    if part >= 0:
        _give(world, v, part, sign)
        return
    if part == STEPS_BACK:
        _take(world, v, -sign)
        return
    world.candidates.log.leaves[v] = sign > 0
    if part == LEAVES:
        _let(world, v, sign)
        return
    if sign < 0:
        stand_up(work, world.room, world.out, v)
    h = holds.head[v]
    while h >= 0:
        leave(world.room, work, v, holds.node[h], holds.device[h], sign * holds.members[h])
        h = holds.next[h]
    _spend(world.tree, work, world.queues, v, sign * gpus_of(work, v))


@inner
def first_beside(work: Work, candidates: Candidates, k: int) -> int:
    """The first of those that were given up together with the ``k``-th, one after the other: itself, or the
    first of its segment, or of the seats of a member.
    """
    log = candidates.log
    v, unit, before = log.slot[k], unit_of(work, log.slot[k]), 0
    if log.part[k] < 0 or unit == 1:
        return k
    for i in range(log.first, k):
        before += log.slot[i] == v and log.part[i] >= 0
    return int(k - before % unit)


@inner
def end_beside(work: Work, candidates: Candidates, k: int) -> int:
    """Behind the last of those that were given up together with the ``k``-th, their first."""
    log = candidates.log
    return int(k + unit_of(work, log.slot[k]) if log.part[k] >= 0 else k + 1)


@inner
def do_beside(world: Session, k: int, sign: int) -> None:
    """The ``k``-th and those given up together with it, of whom it is the first, do what the log says (1), or
    stay after all (-1).
    """
    log = world.candidates.log
    for i in range(k, end_beside(world.work, world.candidates, k)):
        _do(world, log.slot[i], log.part[i], sign)


@inner
def strike_beside(work: Work, candidates: Candidates, k: int) -> None:
    for i in range(end_beside(work, candidates, k) - 1, k - 1, -1):
        strike(candidates, i)


@inner
def strike(candidates: Candidates, k: int) -> None:
    """The ``k``-th was undone alone and is not done again: a gap until ``squeeze``."""
    candidates.log.slot[k] = -1


@inner
def squeeze(candidates: Candidates, before: int) -> None:
    """Close the gaps from ``before`` on."""
    end = before
    for k in range(before, candidates.log.size):
        if candidates.log.slot[k] >= 0:
            candidates.log.slot[end], candidates.log.part[end] = (
                candidates.log.slot[k],
                candidates.log.part[k],
            )
            end += 1
    candidates.log.size = end


@inner
def stand_up(work: Work, room: NodeRoom, out: Decisions, v: int) -> None:
    """``v``, which was about to move, gives back its new seats if it has any."""
    members = out.members[v]
    if members == 0:
        return
    for i in range(out.pool.first[v], out.pool.first[v] + members):
        occupy(room, work, v, out.pool.node[i], out.pool.device[i], -1)
    if out.pool.first[v] + members == out.pool.size[0]:
        out.pool.size[0] = out.pool.first[v]
    take_open(room, work.gpu_class[v], -members * work.need[GPUS, v])
    out.members[v] = 0


@inner
def _take(world: Session, v: int, sign: int) -> None:
    """``v`` takes its seats (1), or gives them back (-1): those that it claims were never taken yet."""
    room, out, work, c = world.room, world.out, world.work, world.out.gpu_class[v]
    claims = out.action[v] == codes.RESERVE
    for i in range(out.pool.first[v], out.pool.first[v] + out.members[v]):
        if claims:
            stay(room, work, v, out.pool.node[i], out.pool.device[i], sign)
        else:
            occupy(room, work, v, out.pool.node[i], out.pool.device[i], sign)
    if claims:
        charge_promise(world, v, sign, False)
        return
    members = sign * out.members[v]
    gpus = members * work.need[GPUS, v]
    take_open(room, c, gpus)
    if out.action[v] == codes.ADMIT:
        note_started(world.queues, c, work.queue[v], gpus)
    charge(world, v, c, members, False)
    book_start(world.tree, work, world.queues, world.users, v, sign)


@inner
def unseat(work: Work, room: NodeRoom, seats: Seats, w: int, sat: int) -> None:
    """Undo the claims of the first ``sat`` seats."""
    for i in range(sat):
        leave(room, work, w, seats.node[i], seats.device[i], 1)


@inner
def release(world: Session, v: int) -> None:
    """Reckon with ``v`` gone: its room is free later, its queues hold less, their budgets shrink."""
    _let(world, v, 1)


@inner
def restore(world: Session, v: int) -> None:
    """Undo ``release``."""
    _let(world, v, -1)


@inner
def _let(world: Session, v: int, sign: int) -> None:
    """What ``v`` gave up before has left already."""
    work, holds, candidates = world.work, world.holds, world.candidates
    h = holds.head[v]
    while h >= 0:
        members = holds.members[h] - candidates.log.members_given_on[h]
        if sign > 0:
            leave(world.room, work, v, holds.node[h], holds.device[h], members)
        else:
            stay(world.room, work, v, holds.node[h], holds.device[h], members)
        h = holds.next[h]
    members = work.members[v] - candidates.log.members_given[v]
    fixed = work.priority[v] >= 0 and not world.ranks.preemptible[work.priority[v]]
    charge(world, v, work.gpu_class[v], -sign * members, fixed)
    book_start(world.tree, work, world.queues, world.users, v, -sign)
    _spend(world.tree, work, world.queues, v, sign * core_of(work, v))


@inner
def _spend(tree: Tree, work: Work, queues: Queues, v: int, gpus: int) -> None:
    """Take ``gpus`` from the eviction budgets above ``v`` and count them in the cap."""
    queues.search.evicted[0] += gpus
    spend_budget(tree, queues, work.queue[v], gpus)


@inner
def _give(world: Session, v: int, h: int, sign: int) -> None:
    """Reckon with one member of hold ``h`` given up (1), or with it back (-1)."""
    work, holds, candidates = world.work, world.holds, world.candidates
    leave(world.room, work, v, holds.node[h], holds.device[h], sign)
    charge(world, v, work.gpu_class[v], -sign, False)
    candidates.log.members_given_on[h] += sign
    candidates.log.members_given[v] += sign


@inner
def how_many(candidates: Candidates) -> int:
    """What the search at work has tried."""
    return candidates.log.size - candidates.log.first
