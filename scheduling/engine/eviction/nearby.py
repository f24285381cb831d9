"""Where a search has to look: nodes with work that its rule might take, and what they lose at least."""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.node_blocks import block_of, note_own
from scheduling.engine.eviction.rules import DELAY, PREEMPT, RECLAIM, STRICT, VictimRequest
from scheduling.engine.eviction.victim_order import rate_nodes, rate_of
from scheduling.engine.placement.node_room import ONE, free_of, may_use
from scheduling.engine.state.input import Work
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS, LATER
from scheduling.engine.state.victims import ANY, READY, Candidates


@inner
def mark_nodes(world: Session, request: VictimRequest) -> None:
    """Number the search; for a preemption note the nodes of its queue's own work."""
    work, candidates, holds = world.work, world.candidates, world.holds
    candidates.bounds.search_number[0] += 1
    if request.rule != PREEMPT:
        rate_nodes(world, request.stretch)
    if request.rule == RECLAIM:
        return
    q = work.queue[request.w]
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        v = candidates.slot[k]
        if work.gpu_class[v] != request.c or candidates.log.leaves[v]:
            continue
        h = holds.head[v]
        while h >= 0:
            n, rate = holds.node[h], rate_of(work, holds, candidates, v, h)
            if candidates.bounds.own_at[n] == candidates.bounds.search_number[0]:
                rate = min(rate, candidates.bounds.own_least_loss[n])
            candidates.bounds.own_at[n], candidates.bounds.own_least_loss[n] = (
                candidates.bounds.search_number[0],
                rate,
            )
            b = block_of(world.index.domains.position[n], request.c)
            note_own(candidates.blocks, b, rate, candidates.bounds.search_number[0])
            h = holds.next[h]


@inner
def _row_of(request: VictimRequest) -> int:
    """Whom a reclaim may take: who spares gangs that lie partly inside their queue's share, and no min run
    time, looks at those that are ready only.
    """
    return READY if not request.owed and request.overlook in (STRICT, DELAY) else ANY


@inner
def is_near(
    work: Work, room: NodeRoom, candidates: Candidates, request: VictimRequest, n: int
) -> bool:
    """Whether node ``n``, on which the workload may run, has work that the rule of ``search`` might take, for
    a reclaim enough for a seat.
    """
    if not may_use(room, work, request.seat, n):
        return False
    need = work.need[GPUS, request.seat]
    own = candidates.bounds.own_at[n] == candidates.bounds.search_number[0]
    if own or request.rule == PREEMPT:
        return bool(own)
    row = _row_of(request)
    if candidates.bounds.least_loss[row, n] == np.inf:
        return False
    return (
        need < ONE or free_of(room, GPUS, n, LATER) + candidates.bounds.most_given[row, n] >= need
    )


@inner
def least_cost(
    work: Work, room: NodeRoom, candidates: Candidates, request: VictimRequest, n: int
) -> float:
    """A lower bound of what a seat on ``n`` loses; 0 where whole GPUs are not what the workload lacks."""
    need = work.need[GPUS, request.seat]
    lacks = need - free_of(room, GPUS, n, LATER)
    rate = candidates.bounds.least_loss[_row_of(request), n] if request.rule != PREEMPT else np.inf
    if candidates.bounds.own_at[n] == candidates.bounds.search_number[0]:
        rate = min(rate, candidates.bounds.own_least_loss[n])
    return rate * lacks if need >= 1000 and lacks > 0 and rate < np.inf else 0.0


@inner
def least_cost_in(candidates: Candidates, request: VictimRequest, need: int, b: int) -> float:
    """A lower bound of ``least_cost`` of the nodes in block ``b``, for members of ``need`` milli-GPU;
    infinite if none of them is near.
    """
    blocks, row = candidates.blocks, _row_of(request)
    lacks = need - blocks.most_free[b]
    if need < ONE or lacks <= 0:
        return 0.0
    own = blocks.own_at[b] == candidates.bounds.search_number[0]
    rate = blocks.own_least_loss[b] if own else np.inf
    if request.rule != PREEMPT and (own or blocks.most_given[row, b] >= lacks):
        rate = min(rate, blocks.least_loss[row, b])
    return rate * lacks if rate < np.inf else np.inf
