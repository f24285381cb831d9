"""What a successful search decides: its victims leave, shrink or move, and the workload keeps its seats."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.allocate import start_or_promise
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.bounds import note_loss
from scheduling.engine.eviction.rules import VictimRequest, is_owed, is_own
from scheduling.engine.eviction.victim_order import reprice
from scheduling.engine.quota.fair_share import LENT, PLAIN, branch_of
from scheduling.engine.reasons.figures import MOVERS, PROMISE, SHRUNK, TAKEN
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Tree, Work, gpus_of
from scheduling.engine.state.roles import parts_of
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.changed import EVERY, ROOM, changed
from scheduling.engine.statement.lines import decide, take_seats
from scheduling.engine.statement.operations import evict, note_coming, note_shift
from scheduling.engine.statement.statement import LEAVES, MOVES, how_many


@inner
def carry_out(world: Session, request: VictimRequest) -> None:
    """The chosen leave, the workload keeps the seats it has claimed.

    They may be free already, held for a gang that goes first: that one gets what the victims leave.
    """
    work, candidates, out, gone = world.work, world.candidates, world.out, 0
    leaves = leaves_by_queue(world.tree, work, candidates, request)
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
def leaves_by_queue(tree: Tree, work: Work, candidates: Candidates, request: VictimRequest) -> Ints:
    """Milli-GPU of the chosen, by their queue just below the common ancestor."""
    leaves = np.zeros(tree.parent.size, np.int64)
    for k in range(candidates.log.first, candidates.log.size):
        v = candidates.log.slot[k]
        if candidates.log.part[k] == MOVES:
            continue
        members = (
            1 if candidates.log.part[k] >= 0 else work.members[v] - candidates.log.members_given[v]
        )
        leaves[branch_of(tree, work.queue[v], work.queue[request.w])] += (
            members * work.need[GPUS, v]
        )
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
    out.rival[v], out.lost[v], out.starts.served[request.w] = (
        request.w,
        world.candidates.lost_gpu_s[v],
        True,
    )
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
    """Which rule lets ``v`` go: the row of ``attempts`` that takes it."""
    if is_own(work, request, v):
        return codes.LOWER_PRIORITY
    if request.stretch != PLAIN:
        return codes.LENT_NOMINAL if request.stretch == LENT else codes.ROUNDED_UP
    owed = is_owed(tree, work, candidates, request, v)
    return codes.OWED_NOMINAL if owed else codes.ABOVE_SHARE
