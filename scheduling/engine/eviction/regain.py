"""Members of elastic gangs that nominal owes to others: borrowers give them up, and the gang grows by them
in a later plan, when they are gone.

Nobody is evicted for a member more. While GPUs of a class come free already, or anybody waits for it, who
gets what comes free is not known, and nobody gives up more.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Flags
from scheduling.engine.eviction.bounds import is_promising, note_loss
from scheduling.engine.eviction.candidates import ensure_candidates
from scheduling.engine.eviction.carry_out import is_shrunk, leaves_by_queue, shrink_for
from scheduling.engine.eviction.free_seats import give_members_on
from scheduling.engine.eviction.protection import patient_until
from scheduling.engine.eviction.rules import NOTHING, RECLAIM, STRICT, VictimRequest, note_owed
from scheduling.engine.placement.node_room import slots_on
from scheduling.engine.placement.unlike import sit_member
from scheduling.engine.quota.fair_share import PLAIN
from scheduling.engine.quota.standing import GROWS, may_hold, standing
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Work
from scheduling.engine.state.order import Ordering
from scheduling.engine.state.roles import elastic_shape, needs_segments, unit_of
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, GPUS, LATER
from scheduling.engine.statement.statement import begin, how_many, undo_all


@inner
def settled_classes(work: Work, out: Decisions, ordering: Ordering, classes: int) -> Flags:
    """Classes for which nobody waits without a claim, nor will once who leaves is gone."""
    found = np.ones(classes, np.bool_)
    for k in range(ordering.pending.size[0]):
        w = ordering.pending.slot[k]
        if out.action[w] != codes.ADMIT and out.reason[w] != codes.AWAITS_VICTIMS:
            _unsettle(work, w, found)
    for k in range(ordering.running.size[0]):
        v = ordering.running.slot[k]
        if work.leaving[v] or out.action[v] == codes.EVICT:
            _unsettle(work, v, found)
    return found


@inner
def _unsettle(work: Work, w: int, settled: Flags) -> None:
    for i in range(work.wish.shape[0]):
        if work.wish[i, w] >= 0:
            settled[work.wish[i, w]] = False


@inner
def regain_member(world: Session, w: int, c: int, home: int) -> bool:
    """Others give up members so that one more of ``w``, which has a member on node ``home``, fits on class
    ``c``: only what is owed to it.
    """
    work, seats, one = world.work, world.seats, elastic_shape(world.work, w)
    need = unit_of(work, w) * work.need[GPUS, w]
    stands = standing(world, w, c, need, GROWS)
    request = VictimRequest(w, c, RECLAIM, stands.share, True, STRICT, need, True, PLAIN, one)
    # A segment has to come free in one domain; members are given up one by one.
    if needs_segments(work, w) or not may_hold(stands, 0) or note_owed(world, request) == NOTHING:
        return False
    if world.rules.now < patient_until(work, world.rules, w, RECLAIM, True):
        return False
    ensure_candidates(world)
    if not is_promising(world, request):
        return False
    n = _easiest(world, request, home)
    if n < 0:
        return False
    give_members_on(world, request, n)
    sit_member(world.room, work, w, work.elastic_role[w], n, seats.node, seats.device, 0, LATER)
    candidates, out = world.candidates, world.out
    leaves = leaves_by_queue(world.tree, work, candidates, out, request)
    for k in range(candidates.log.first, candidates.log.size):
        v = candidates.log.slot[k]
        note_loss(world, k)
        if not is_shrunk(work, out, candidates, v):
            shrink_for(world, request, v, leaves)
            out.rule[v] = codes.REGAINED
    return True


@inner
def _easiest(world: Session, request: VictimRequest, home: int) -> int:
    """The node on which fewest members have to be given up for one seat, lowest name on ties; -1 if none."""
    candidates, nodes, level = world.candidates, world.nodes, world.work.required[request.w]
    best, fewest = -1, 0
    candidates.bounds.search_number[0] += 1
    begin(world.queues, candidates)
    for i in range(nodes.class_start[request.c], nodes.class_start[request.c + 1]):
        n = nodes.of_class[i]
        if level != ANYWHERE and nodes.domain[level, n] != nodes.domain[level, home]:
            continue
        if slots_on(world.room, world.work, request.seat, n, LATER) > 0:
            continue
        gives = give_members_on(world, request, n)
        given = how_many(candidates)
        undo_all(world)
        if gives and (best < 0 or given < fewest):
            best, fewest = n, given
    return best
