"""What a successful search decides: its victims leave, shrink or move, and the workload keeps its seats.

What the whole plan can do without stays: a search puts back the victims that it does not need itself, but
another one may free more than it takes, and then whoever left for the first could start again in the next
cycle. Draining queues and stale gangs leave whatever others need.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.trial import start_or_promise
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.bounds import note_loss
from scheduling.engine.eviction.candidates import drop_weight
from scheduling.engine.eviction.minimal_set import seats_hold
from scheduling.engine.eviction.rules import VictimRequest, given_by, is_owing, is_own
from scheduling.engine.eviction.victim_order import reprice
from scheduling.engine.quota.fair_share import LENT, PLAIN, branch_of
from scheduling.engine.quota.standing import INSIDE, STANDS, standing
from scheduling.engine.reasons.figures import DRAINING, MOVERS, PROMISE, SHORT_GANG, SHRUNK, TAKEN
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Holds, Rules, Tree, Work, gpus_of, work_lost
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.roles import parts_of
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.lines import (
    EVERY,
    RETURN,
    ROOM,
    changed,
    decide,
    take_back,
    take_seats,
)
from scheduling.engine.statement.operations import evict, note_coming, note_shift
from scheduling.engine.statement.statement import LEAVES, MOVES, how_many, release, restore
from scheduling.engine.workload import keeps_seats

_keeps_seats = inner(keeps_seats)


@inner
def carry_out(world: Session, request: VictimRequest) -> None:
    """The chosen leave, the workload keeps the seats it has claimed.

    They may be free already, held for a gang that goes first: that one gets what the victims leave.
    """
    work, candidates, out, gone = world.work, world.candidates, world.out, 0
    leaves = leaves_by_queue(world.tree, work, candidates, out, request)
    for k in range(candidates.log.first, candidates.log.size):
        v = candidates.log.slot[k]
        note_loss(world, k)
        if candidates.log.part[k] == MOVES:
            move_for(world, request, v)
            world.queues.round.moves += 1
            gone += 1
        elif candidates.log.part[k] == LEAVES:
            reason = codes.PREEMPTED if is_own(work, request, v) else codes.RECLAIMED
            evict_for(world, request, v, reason, leaves)
            gone += 1
        elif not candidates.log.leaves[v] and not is_shrunk(work, out, candidates, v):
            shrink_for(world, request, v, leaves)
            gone += 1
    changed(candidates, world.shapes, ROOM, request.c, EVERY)
    start_or_promise(world, request.w, request.c, work.least[request.w])
    if out.action[request.w] == codes.RESERVE:
        out.figures[request.w, PROMISE.victims] = gone


@inner
def leaves_by_queue(
    tree: Tree, work: Work, candidates: Candidates, out: Decisions, request: VictimRequest
) -> Ints:
    """Milli-GPU of the chosen, by their queue just below the common ancestor."""
    leaves, log = np.zeros(tree.parent.size, np.int64), candidates.log
    for k in range(log.first, log.size):
        q = branch_of(tree, work.queue[log.slot[k]], work.queue[request.w])
        leaves[q] += given_by(work, candidates, out, k)
    return leaves


@inner
def is_shrunk(work: Work, out: Decisions, candidates: Candidates, v: int) -> bool:
    """Whether the line of ``v`` says already what it is left with."""
    left = work.members[v] - candidates.log.members_given[v]
    return bool(out.action[v] == codes.SHRINK and out.members[v] == left)


@inner
def evict_for(world: Session, request: VictimRequest, v: int, reason: int, leaves: Ints) -> None:
    """``v`` leaves for the workload of ``search``; quotes its queue below the common ancestor, of which
    ``leaves`` milli-GPU go.
    """
    evict(world, v, reason)
    world.out.lost[v] = world.candidates.lost_gpu_s[v]
    world.candidates.bounds.rated[0] += 1
    _quote_excess(world, request, v, leaves)


@inner
def evict_mover(world: Session, request: VictimRequest, v: int) -> None:
    """``v``, which was to move, leaves for the workload of ``search`` instead. Its line stays in its place,
    before the one of the work that gets its room.
    """
    work = world.work
    world.out.action[v], world.out.reason[v] = codes.EVICT, codes.PREEMPTED
    note_shift(work, world.queues, v, work.members[v])
    leaves = np.zeros(world.tree.parent.size, np.int64)
    leaves[work.queue[v]] = work.members[v] * work.need[GPUS, v]
    _quote_excess(world, request, v, leaves)


@inner
def shrink_for(world: Session, request: VictimRequest, v: int, leaves: Ints) -> None:
    """``v`` gives up the members noted in ``world.candidates`` for the workload of ``search`` and goes on
    with the others where they sit.
    """
    holds, work, out, candidates = world.holds, world.work, world.out, world.candidates
    members = work.members[v] - candidates.log.members_given[v]
    before = out.members[v] if out.action[v] == codes.SHRINK else work.members[v]
    gpus = (before - members) * work.need[GPUS, v]
    decide(out, v, codes.SHRINK, codes.SHRINKS, request.c, members)
    at, h = take_seats(out, v, members), holds.head[v]
    while h >= 0:
        for _ in range(holds.members[h] - candidates.log.members_given_on[h]):
            out.pool.node[at], out.pool.device[at] = holds.node[h], holds.device[h]
            at += 1
        h = holds.next[h]
    note_coming(world.tree, work, world.room, world.queues, v, gpus)
    reprice(work, holds, world.rules, candidates, v, members)
    _quote_excess(world, request, v, leaves)
    given = candidates.log.members_given[v]
    out.figures[v, SHRUNK.gives_members] = given // parts_of(work, v, work.elastic_role[v])


@inner
def move_for(world: Session, request: VictimRequest, v: int) -> None:
    """``v`` goes on, for the workload of ``search``, on the seats that it has taken already."""
    work, out, gpus = world.work, world.out, gpus_of(world.work, v)
    decide(out, v, codes.MOVE, codes.CONSOLIDATES, request.c, work.members[v])
    out.blame[v], out.figures[v, MOVERS.moves] = work.queue[v], gpus
    out.rule[v] = codes.MOVED
    out.figures[v, MOVERS.requested] = request.need
    out.figures[v, MOVERS.workloads] = how_many(world.candidates)
    out.rival[v], out.starts.served[request.w] = request.w, True
    out.lost[v] = world.candidates.lost_gpu_s[v]
    note_coming(world.tree, work, world.room, world.queues, v, gpus)


@inner
def _quote_excess(world: Session, request: VictimRequest, v: int, leaves: Ints) -> None:
    """For whom ``v`` leaves, and how the queue below the common ancestor stood with all that ``leaves``."""
    out = world.out
    q = branch_of(world.tree, world.work.queue[v], world.work.queue[request.w])
    out.rival[v] = request.w
    out.rule[v] = rule_of(world.tree, world.work, world.candidates, request, v)
    out.starts.served[request.w] = True
    usage = world.queues.usage.gpus[request.c, q]
    out.blame[v], out.figures[v, TAKEN.keeps] = q, usage
    out.figures[v, TAKEN.held], out.figures[v, TAKEN.requested] = usage + leaves[q], request.need
    out.figures[v, TAKEN.fair_share] = world.division.fair[request.c, q]
    out.figures[v, TAKEN.nominal] = world.quotas.nominal[request.c, q]


@inner
def rule_of(tree: Tree, work: Work, candidates: Candidates, request: VictimRequest, v: int) -> int:
    """Which rule lets ``v`` go: the row of ``WAYS`` that takes it."""
    if is_own(work, request, v):
        return codes.LOWER_PRIORITY
    if request.stretch != PLAIN:
        return codes.LENT_NOMINAL if request.stretch == LENT else codes.ROUNDED_UP
    owed = request.owed and is_owing(tree, work, candidates, request, v)
    return codes.OWED_NOMINAL if owed else codes.ABOVE_SHARE


@inner
def spare_the_needless(world: Session, since: int) -> None:
    """Work that was evicted for others from decision ``since`` on stays where all that is promised holds
    beside it, the last first. Limits on workloads and users are left alone: which work is tried next depends
    on them.
    """
    out = world.out
    if world.queues.limits.any or _served(out, world.candidates, since) < 2:
        return
    k = out.size[0] - 1
    while k >= since:
        v = out.order[k]
        if _left_for_others(out, world.candidates, v) and _can_stay(world, v):
            _stay(world, v)
        k -= 1


@inner
def _served(out: Decisions, candidates: Candidates, since: int) -> int:
    """For how many others left."""
    before, found = -1, 0
    for k in range(since, out.size[0]):
        v = out.order[k]
        if _left_for_others(out, candidates, v) and out.rival[v] != before:
            before = out.rival[v]
            found += 1
    return found


@inner
def _left_for_others(out: Decisions, candidates: Candidates, v: int) -> bool:
    evicted = out.action[v] == codes.EVICT and out.rival[v] >= 0
    return bool(evicted and candidates.log.members_given[v] == 0 and candidates.log.leaves[v])


@inner
def _can_stay(world: Session, v: int) -> bool:
    """With ``v`` back no seat is promised twice, and its queues are inside their shares and limits; or ``v``
    is gone as before.
    """
    restore(world, v)
    stands = standing(world, v, world.work.gpu_class[v], 0, STANDS)
    if stands.says == INSIDE and seats_hold(world.holds, world.room, v):
        return True
    release(world, v)
    return False


@inner
def _stay(world: Session, v: int) -> None:
    """Nothing is decided on ``v``, which has its room back; it may be taken again."""
    candidates, work, out, rival = world.candidates, world.work, world.out, world.out.rival[v]
    note_coming(world.tree, work, world.room, world.queues, v, -gpus_of(work, v))
    if out.action[rival] == codes.RESERVE:
        out.figures[rival, PROMISE.victims] -= 1
    take_back(out, v)
    out.lost[v] = 0.0
    candidates.log.leaves[v] = False
    drop_weight(work, world.ranks, world.rules, world.tree, candidates, v, -1)
    changed(candidates, world.shapes, RETURN, work.gpu_class[v], work.queue[v])


@inner
def keep_their_seats(world: Session) -> None:
    """Where a claim has just lapsed, who still leaves for it may keep its own seats."""
    pending = world.ordering.pending
    for k in range(pending.size[0] if pending.promised > 0 else 0):
        if world.out.lapsed[pending.slot[k]] >= 0:
            _spare_victims_of(world, pending.slot[k])


@inner
def _spare_victims_of(world: Session, w: int) -> None:
    work, running = world.work, world.ordering.running
    for k in range(running.size[0]):
        v = running.slot[k]
        leaves = work.leaving[v] and work.part_of[v] < 0 and work.evicted_for[v] == work.tie[w]
        beside = leaves and _others_claim_beside(work, world.holds, world.room, world.out, v)
        if not _keeps_seats(leaves, work.need[GPUS, v], beside):
            continue
        restore(world, v)
        if seats_hold(world.holds, world.room, v):
            note_coming(world.tree, work, world.room, world.queues, v, -gpus_of(work, v))
        else:
            release(world, v)


@inner
def _others_claim_beside(work: Work, holds: Holds, room: NodeRoom, out: Decisions, v: int) -> bool:
    """Whether a claim that stands has seats on a node of ``v``."""
    holders, mine = room.holders, holds.head[v]
    while mine >= 0:
        h = holders.first[holds.node[mine]]
        while h >= 0:
            w = holders.owner[h]
            if w != v and work.claims[w] and out.lapsed[w] < 0:
                return True
            h = holders.after[h]
        mine = holds.next[mine]
    return False


@inner
def evict_the_unwanted(world: Session) -> None:
    """Step 1. Draining spares nobody; a gang is stale below its least members past the grace."""
    work, rules, ordering = world.work, world.rules, world.ordering
    if ordering.running.below_minimum == 0 and not (world.tree.stop == codes.DRAINS).any():
        return
    for k in range(ordering.running.queue_begin[2], ordering.running.size[0]):
        w = ordering.running.slot[k]
        if work.leaving[w]:
            continue
        short = work.members[w] < work.least[w]
        stale = short and rules.now >= work.stale[w] + rules.grace
        if world.tree.stop[work.queue[w]] == codes.DRAINS:
            evict(world, w, codes.DRAINED)
            world.out.rule[w] = codes.DRAINING
        elif stale:
            evict(world, w, codes.STALE_GANG)
            world.out.rule[w] = codes.STALE
        else:
            continue
        release(world, w)
        world.out.lost[w] = work_lost(work, w, work.members[w], rules.now)
        _quote(work, rules, world.out, w)


@inner
def _quote(work: Work, rules: Rules, out: Decisions, w: int) -> None:
    """How many members of ``w`` run, since when these are too few, and what that gives back."""
    figures, gpus = out.figures, gpus_of(work, w)
    out.blame[w] = work.queue[w]
    if out.reason[w] == codes.DRAINED:
        figures[w, DRAINING.members], figures[w, DRAINING.gives_back] = work.members[w], gpus
        figures[w, DRAINING.min_members] = work.least[w]
        return
    figures[w, SHORT_GANG.members], figures[w, SHORT_GANG.gives_back] = work.members[w], gpus
    figures[w, SHORT_GANG.min_members] = work.least[w]
    figures[w, SHORT_GANG.stale_s] = rules.now - work.stale[w]
