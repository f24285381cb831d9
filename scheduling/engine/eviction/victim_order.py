"""In which order victims are looked at: least work lost first, inside a leaf lowest priority first. Each part
of the candidates is put in order when first somebody looks there.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.candidates import find_shields
from scheduling.engine.model import UNLIMITED
from scheduling.engine.placement.node_room import ONE
from scheduling.engine.quota.fair_share import PLAIN, beyond_nominal, is_below, left_by
from scheduling.engine.quota.limits import eviction_limit_reached
from scheduling.engine.state.input import Holds, Quotas, Rules, Work, extra_of, gpus_of, work_lost
from scheduling.engine.state.nodes import BLOCK_SIZE, NodeRoom
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS, GPUS
from scheduling.engine.state.victims import ANY, READY, Candidates

RATED_FOR = 200
"""Evictions after which rates are found anew."""


@inner
def order_leaf(work: Work, candidates: Candidates, q: int) -> None:
    """Puts ``candidates.slot`` in order for leaf ``q``."""
    begin = candidates.leaf_begin
    if not candidates.order.leaf_sorted[q]:
        candidates.order.leaf_sorted[q] = True
        _order(work, candidates, candidates.slot, begin[q], begin[q + 1])


@inner
def order_below(world: Session, c: int, top: int, own: int) -> int:
    """Fills ``order.below_slot`` with the candidates of class ``c`` below queue ``top``, in order: that of
    leaf ``own``, and of the others that hold more than their shares. Returns how many.
    """
    work, candidates, size = world.work, world.candidates, 0
    slot, begin, found = candidates.slot, candidates.leaf_begin, candidates.order.below_slot
    for q in range(begin.size - 1):
        if begin[q] == begin[q + 1] or not is_below(world.tree, q, top):
            continue
        if q != own and _above(world.quotas, world.division, world.queues, c, q, PLAIN) <= EPS:
            continue
        for k in range(begin[q], begin[q + 1]):
            if work.gpu_class[slot[k]] == c:
                found[size] = slot[k]
                size += 1
    _order(work, candidates, found, 0, size)
    return size


@inner
def order_node(work: Work, room: NodeRoom, candidates: Candidates, n: int) -> None:
    """Fills ``order.node_slot`` for node ``n``, in order; a gang is there once for each of its holds."""
    order = candidates.order
    if order.node_sorted[n]:
        return
    order.node_sorted[n] = True
    at = order.node_begin[n] = order.node_used[0]
    h = room.holders.first[n]
    while h >= 0:
        v = room.holders.owner[h]
        if candidates.listed_in[v] == candidates.number[0]:
            order.node_slot[at] = v
            at += 1
        h = room.holders.after[h]
    order.node_end[n] = order.node_used[0] = at
    _order(work, candidates, order.node_slot, order.node_begin[n], at)


@inner
def block_of(position: int, c: int) -> int:
    """Of the node at ``position``, which is of class ``c``: no two classes share one."""
    return position // BLOCK_SIZE + c


@inner
def rate_nodes(world: Session, stretch: int) -> None:
    """What a milli-GPU on each node costs at least, whichever work there leaves, and how many there are to
    take.

    Evictions only take candidates away, so these hold on as bounds; now and then they are found anew.
    """
    candidates, begin = world.candidates, world.candidates.leaf_begin
    bounds, blocks = candidates.bounds, candidates.blocks
    if bounds.rated[0] < RATED_FOR:
        _rate_the_risen(world)
        return
    bounds.rated[0] = 0
    bounds.risen.fill(False)
    bounds.least_loss.fill(np.inf)
    bounds.most_given.fill(0)
    blocks.least_loss.fill(np.inf)
    blocks.most_given.fill(0)
    for q in range(begin.size - 1):
        some = begin[q] < begin[q + 1]
        if some and _has_too_much(world.quotas, world.division, world.queues, q, stretch):
            find_shields(world.tree, world.ranks, candidates, q)
            _rate(world, q, True, stretch)


@inner
def _has_too_much(quotas: Quotas, division: Division, queues: Queues, q: int, stretch: int) -> bool:
    """Whether leaf ``q`` is above what is left to it in any class."""
    for c in range(queues.usage.gpus.shape[0]):
        if _above(quotas, division, queues, c, q, stretch) > EPS:
            return True
    return False


@inner
def _rate_the_risen(world: Session) -> None:
    """Leaves that hold more than when nodes were rated: any of their candidates may be too much now. They are
    looked at again while anything is only tried, since undoing it lets them hold still more.
    """
    quotas, division, queues = world.quotas, world.division, world.queues
    candidates = world.candidates
    for q in range(candidates.bounds.risen.size):
        if candidates.bounds.risen[q] and _has_too_much(quotas, division, queues, q, PLAIN):
            _rate(world, q, False, PLAIN)
    if candidates.log.size == 0:
        candidates.bounds.risen.fill(False)


@inner
def reprice(
    work: Work, holds: Holds, rules: Rules, candidates: Candidates, v: int, members: int
) -> None:
    """``v`` goes on with ``members``. Less is lost with those, so it stands further ahead in each list."""
    q = work.queue[v]
    as_lost = candidates.price[v] == candidates.lost_gpu_s[v]
    candidates.lost_gpu_s[v] = work_lost(work, v, members, rules.now)
    if as_lost:
        candidates.price[v] = candidates.lost_gpu_s[v]
    order, begin, h = candidates.order, candidates.leaf_begin, holds.head[v]
    if order.leaf_sorted[q]:
        _order(work, candidates, candidates.slot, begin[q], begin[q + 1])
    while h >= 0:
        n = holds.node[h]
        if order.node_sorted[n]:
            _order(work, candidates, order.node_slot, order.node_begin[n], order.node_end[n])
        h = holds.next[h]


@inner
def _is_ready(work: Work, rules: Rules, candidates: Candidates, v: int, above: float) -> bool:
    """Of candidates in a leaf that is ``above`` its share."""
    if extra_of(work, v) > 0:
        return True
    bound = rules.now < work.started[v] + candidates.shortest_min_run_s[work.priority[v]]
    stays = candidates.log.leaves[v] or eviction_limit_reached(work, rules, v)
    return above >= gpus_of(work, v) - EPS and not bound and not stays


@inner
def _rate(world: Session, q: int, afresh: bool, stretch: int) -> None:
    """The candidates of leaf ``q`` in classes of which it holds too much: of others nobody takes any. Not
    ``afresh``, when it holds more than before. Arrays are looked up once.
    """
    candidates, holds, work = world.candidates, world.holds, world.work
    quotas, division, queues = world.quotas, world.division, world.queues
    head, after, node, members = holds.head, holds.next, holds.node, holds.members
    least, of_leaf = candidates.bounds.least_loss, candidates.bounds.scratch
    of_block, position = candidates.blocks.least_loss, world.index.domains.position
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        v = candidates.slot[k]
        c = work.gpu_class[v]
        above = _above(quotas, division, queues, c, q, stretch)
        if above <= EPS or _leaves_too_little(quotas, division, queues, work, v):
            continue
        ready = extra_of(work, v) > 0 or not eviction_limit_reached(work, world.rules, v)
        if afresh:
            ready = _is_ready(work, world.rules, candidates, v, above)
        # Milli-GPU that come free at most where a member leaves: with a share a whole GPU.
        h, one = head[v], max(work.need[GPUS, v], ONE) if work.need[GPUS, v] > 0 else 0
        while h >= 0:
            n, rate = node[h], rate_of(work, holds, candidates, v, h)
            b = block_of(position[n], c)
            least[ANY, n] = min(least[ANY, n], rate)
            of_block[ANY, b] = min(of_block[ANY, b], rate)
            of_leaf[ANY, n] += members[h] * one
            if ready:
                least[READY, n] = min(least[READY, n], rate)
                of_block[READY, b] = min(of_block[READY, b], rate)
                of_leaf[READY, n] += members[h] * one
            h = after[h]
    _add_yields(world, q, stretch)


@inner
def _leaves_too_little(
    quotas: Quotas, division: Division, queues: Queues, work: Work, v: int
) -> bool:
    """Its leaf would keep less than its nominal, whoever else stays: no reclaim may take it."""
    most = beyond_nominal(quotas, division, queues, work.gpu_class[v], work.queue[v])
    return extra_of(work, v) == 0 and gpus_of(work, v) > most


@inner
def _add_yields(world: Session, q: int, stretch: int) -> None:
    """On each node leaf ``q``, just rated, gives no more than it holds there, nor than it holds too much of
    the class; a search for what is owed takes one gang beyond. Shares of GPUs and what elastic gangs can do
    without are not bounded so.
    """
    quotas, division, queues = world.quotas, world.division, world.queues
    candidates, holds, work = world.candidates, world.holds, world.work
    given, scratch = candidates.bounds.most_given, candidates.bounds.scratch
    of_block = candidates.blocks.most_given
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        v = candidates.slot[k]
        c = work.gpu_class[v]
        above = _above(quotas, division, queues, c, q, stretch)
        most, keeps = int(above) + 1, beyond_nominal(quotas, division, queues, c, q)
        if candidates.by_queue.unbounded[q]:
            most = keeps = UNLIMITED
        h = holds.head[v] if above > EPS else -1
        while h >= 0:
            n = holds.node[h]
            given[READY, n] += min(most, scratch[READY, n])
            beyond = most + candidates.by_queue.largest_gang[c, q]
            given[ANY, n] += min(beyond, scratch[ANY, n], keeps)
            scratch[ANY, n] = scratch[READY, n] = 0
            b = block_of(world.index.domains.position[n], c)
            for row in (ANY, READY):
                of_block[row, b] = max(of_block[row, b], given[row, n])
            h = holds.next[h]


@inner
def _above(
    quotas: Quotas, division: Division, queues: Queues, c: int, q: int, stretch: int
) -> float:
    return float(queues.usage.gpus[c, q] - left_by(quotas, division, c, q, stretch))


@inner
def rate_of(work: Work, holds: Holds, candidates: Candidates, v: int, h: int) -> float:
    """What a milli-GPU of hold ``h`` costs at least. Members that a gang can do without cost next to
    nothing, so they bound nothing.
    """
    gpus = holds.members[h] * work.need[GPUS, v]
    free = gpus == 0 or extra_of(work, v) > 0
    return 0.0 if free else (candidates.price[v] + gpus_of(work, v) / 1000.0) / gpus


@inner
def _order(work: Work, candidates: Candidates, table: Ints, first: int, last: int) -> None:
    """Bottom-up merge sort of ``table[first:last]``."""
    width, spare = 1, candidates.order.scratch
    while width < last - first:
        for low in range(first, last, 2 * width):
            middle, high = min(low + width, last), min(low + 2 * width, last)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and not _after(work, candidates, table[i], table[j])):
                    spare[k - first] = table[i]
                    i += 1
                else:
                    spare[k - first] = table[j]
                    j += 1
        for k in range(first, last):
            table[k] = spare[k - first]
        width *= 2


@inner
def _after(work: Work, candidates: Candidates, a: int, b: int) -> bool:
    """Order: lowest price, started last, submitted last, lowest name."""
    if candidates.price[a] != candidates.price[b]:
        return candidates.price[a] > candidates.price[b]
    if work.started[a] != work.started[b]:
        return work.started[a] < work.started[b]
    if work.submitted[a] != work.submitted[b]:
        return work.submitted[a] < work.submitted[b]
    return work.tie[a] > work.tie[b]
