"""What a successful search decides: its victims leave, shrink or move, and the workload keeps its seats."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.allocate import start_or_promise
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.bounds import note_loss
from scheduling.engine.eviction.lines import evict_for, is_shrunk, move_for, shrink_for
from scheduling.engine.eviction.rules import VictimRequest, is_own
from scheduling.engine.quota.fair_share import branch_of
from scheduling.engine.reasons.figures import PROMISE
from scheduling.engine.state.input import Tree, Work
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.changed import EVERY, ROOM, changed
from scheduling.engine.statement.statement import LEAVES, MOVES


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
