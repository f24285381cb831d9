"""Which node a search looks at next: the one on which a seat costs least, found without looking at all.

Nodes stand on a heap by cost. Those of a class that nobody has come to yet stay in blocks, on a heap of their
own by what a seat on any of their nodes costs at least. A block is opened once no node costs less, or before
any of its nodes changes: then its nodes join the others as they were when the search began, so that each
comes up where it would if all had joined at once.

Bounds, for each node and for blocks of ``BLOCK_SIZE`` neighbours of one class by position in
``Nodes.of_class``, say what is free, what there is to take and what that costs at least.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.rules import DELAY, PREEMPT, RECLAIM, STRICT, VictimRequest
from scheduling.engine.eviction.victim_order import block_of, rate_nodes, rate_of
from scheduling.engine.placement.node_room import ONE, free_of, may_use, slots_on
from scheduling.engine.state.input import Nodes, Work
from scheduling.engine.state.nodes import BLOCK_SIZE, NodeRoom
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS, LATER
from scheduling.engine.state.victims import ANY, READY, Candidates, CostHeap, NodeBlocks


@inner
def enter(
    work: Work, room: NodeRoom, candidates: Candidates, request: VictimRequest, among: Ints
) -> None:
    """Those of the nodes ``among`` that have room or may get it join the heap, with a lower bound of their
    cost.
    """
    heap = candidates.heap
    for n in among:
        if slots_on(room, work, request.seat, n, LATER) > 0:
            push(heap, n, 0.0)
        elif is_near(work, room, candidates, request, n):
            push(heap, n, least_cost(work, room, candidates, request, n))
        heap.costed_at[n] = 0


@inner
def enter_class(world: Session, request: VictimRequest) -> None:
    """The same for all nodes of the class, in closed blocks."""
    blocks, nodes, c = world.candidates.blocks, world.nodes, request.c
    first, last = nodes.class_start[c], nodes.class_start[c + 1]
    if first == last:
        return
    renew_free(blocks, world.room, nodes, world.index.domains.position, c)
    for b in range(block_of(first, c), block_of(last - 1, c) + 1):
        blocks.open[b] = False
        cost = least_cost_in(world.candidates, request, world.work.need[GPUS, request.seat], b)
        if cost < np.inf:
            push(blocks.heap, b, cost)


@inner
def next_node(
    nodes: Nodes, work: Work, room: NodeRoom, candidates: Candidates, request: VictimRequest
) -> int:
    """The node at the front, -1 if none is left."""
    heap, blocks = candidates.heap, candidates.blocks
    while blocks.heap.size[0] > 0:
        b = blocks.heap.node[0]
        among = _nodes_in(nodes, b, request.c)
        if not blocks.open[b] and _comes_later(blocks, b, among[0], heap):
            break
        drop_first(blocks.heap)
        if not blocks.open[b]:
            blocks.open[b] = True
            enter(work, room, candidates, request, among)
    return int(heap.node[0]) if heap.size[0] > 0 else -1


@inner
def _comes_later(blocks: NodeBlocks, b: int, first: int, heap: CostHeap) -> bool:
    """Whether block ``b`` of nodes from ``first`` on comes after the front of the heap of nodes."""
    if heap.size[0] == 0:
        return False
    n, cost = heap.node[0], blocks.heap.cost[b]
    return bool(cost > heap.cost[n] or (cost == heap.cost[n] and first > n))


@inner
def _nodes_in(nodes: Nodes, b: int, c: int) -> Ints:
    """Block ``b`` of class ``c``, lowest first."""
    first, last = (b - c) * BLOCK_SIZE, (b - c + 1) * BLOCK_SIZE
    return nodes.of_class[max(first, nodes.class_start[c]) : min(last, nodes.class_start[c + 1])]


@inner
def open_beside(world: Session, request: VictimRequest, n: int) -> None:
    """Open the blocks of all nodes that change where whoever sits on node ``n`` leaves it, and somebody
    sits down there.
    """
    candidates, holds = world.candidates, world.holds
    if candidates.blocks.heap.size[0] == 0:
        return
    _open_machine(world, request, n)
    if candidates.heap.cost[n] == 0.0:
        return
    for k in range(candidates.order.node_begin[n], candidates.order.node_end[n]):
        h = holds.head[candidates.order.node_slot[k]]
        while h >= 0:
            _open_machine(world, request, holds.node[h])
            h = holds.next[h]


@inner
def _open_machine(world: Session, request: VictimRequest, n: int) -> None:
    """Rows of one machine share CPUs and memory."""
    room, candidates, row = world.room, world.candidates, n
    while True:
        c, position = room.gpu_class[row], world.index.domains.position[row]
        b = block_of(position, c)
        if c == request.c and not candidates.blocks.open[b]:
            candidates.blocks.open[b] = True
            enter(world.work, room, candidates, request, _nodes_in(world.nodes, b, c))
        row = room.next_on_machine[row]
        if row == n:
            return


@inner
def push(heap: CostHeap, n: int, cost: float) -> None:
    at = heap.size[0]
    heap.size[0] += 1
    heap.node[at], heap.position[n], heap.cost[n] = n, at, cost
    _rise(heap, at)


@inner
def change(heap: CostHeap, n: int, cost: float) -> None:
    heap.cost[n] = cost
    _rise(heap, heap.position[n])
    _sink(heap, heap.position[n])


@inner
def drop_first(heap: CostHeap) -> None:
    """The victims that cost least leave."""
    heap.size[0] -= 1
    n, last = heap.node[0], heap.node[heap.size[0]]
    heap.node[0], heap.position[last], heap.position[n] = last, 0, -1
    if heap.size[0] > 0:
        _sink(heap, 0)


@inner
def forget(heap: CostHeap) -> None:
    """Nobody stands on it."""
    for at in range(heap.size[0]):
        heap.position[heap.node[at]] = -1
    heap.size[0] = 0


@inner
def _rise(heap: CostHeap, at: int) -> None:
    while at > 0 and _cheaper(heap, at, (at - 1) // 2):
        _swap(heap, at, (at - 1) // 2)
        at = (at - 1) // 2


@inner
def _sink(heap: CostHeap, at: int) -> None:
    while True:
        least = at
        for kid in (2 * at + 1, 2 * at + 2):
            if kid < heap.size[0] and _cheaper(heap, kid, least):
                least = kid
        if least == at:
            return
        _swap(heap, at, least)
        at = least


@inner
def _cheaper(heap: CostHeap, i: int, j: int) -> bool:
    a, b = heap.node[i], heap.node[j]
    return heap.cost[a] < heap.cost[b] or (heap.cost[a] == heap.cost[b] and a < b)


@inner
def _swap(heap: CostHeap, i: int, j: int) -> None:
    a, b = heap.node[i], heap.node[j]
    heap.node[i], heap.node[j] = b, a
    heap.position[a], heap.position[b] = j, i


@inner
def mark_nodes(world: Session, request: VictimRequest) -> None:
    """Number the search; for a preemption note the nodes of its queue's own work."""
    work, candidates, holds = world.work, world.candidates, world.holds
    candidates.bounds.search_number[0] += 1
    if request.rule != PREEMPT:
        rate_nodes(world, request.stretch)
    if request.rule == RECLAIM:
        return
    bounds, blocks, q = candidates.bounds, candidates.blocks, work.queue[request.w]
    number = bounds.search_number[0]
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        v = candidates.slot[k]
        if work.gpu_class[v] != request.c or candidates.log.leaves[v]:
            continue
        h = holds.head[v]
        while h >= 0:
            n, rate = holds.node[h], rate_of(work, holds, candidates, v, h)
            if bounds.own_at[n] == number:
                rate = min(rate, bounds.own_least_loss[n])
            bounds.own_at[n], bounds.own_least_loss[n] = number, rate
            b = block_of(world.index.domains.position[n], request.c)
            if blocks.own_at[b] == number:
                rate = min(rate, blocks.own_least_loss[b])
            blocks.own_at[b], blocks.own_least_loss[b] = number, rate
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
    bounds, row = candidates.bounds, _row_of(request)
    if bounds.least_loss[row, n] == np.inf:
        return False
    return need < ONE or free_of(room, GPUS, n, LATER) + bounds.most_given[row, n] >= need


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


@inner
def renew_free(blocks: NodeBlocks, room: NodeRoom, nodes: Nodes, position: Ints, c: int) -> None:
    """Bring ``most_free`` of class ``c`` up to date: only where nodes have changed."""
    first, last = nodes.class_start[c], nodes.class_start[c + 1]
    if blocks.seen[c] < room.changes.cleared_at:
        for b in range(block_of(first, c), block_of(last - 1, c) + 1):
            _renew_block(blocks, room, nodes, b, c)
    else:
        n = room.changes.newest[c]
        while n >= 0 and room.changes.changed_at[n] > blocks.seen[c]:
            _renew_block(blocks, room, nodes, block_of(position[n], c), c)
            n = room.changes.older[n]
    blocks.seen[c] = room.changes.clock


@inner
def _renew_block(blocks: NodeBlocks, room: NodeRoom, nodes: Nodes, b: int, c: int) -> None:
    first = max(nodes.class_start[c], (b - c) * BLOCK_SIZE)
    last = min(nodes.class_start[c + 1], (b - c + 1) * BLOCK_SIZE)
    most = room.free_later[GPUS, nodes.of_class[first]]
    for i in range(first + 1, last):
        most = max(most, room.free_later[GPUS, nodes.of_class[i]])
    blocks.most_free[b] = most
