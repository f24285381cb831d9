"""In which order victims are looked at: least work lost first, inside a leaf lowest priority first. Each part
of the candidates is put in order when first somebody looks there.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.candidates import find_shields
from scheduling.engine.eviction.node_blocks import block_of, forget_rates
from scheduling.engine.model import UNLIMITED
from scheduling.engine.placement.node_room import ONE
from scheduling.engine.quota.fair_share import PLAIN, beyond_nominal, is_below, left_by
from scheduling.engine.quota.limits import eviction_limit_reached
from scheduling.engine.state.input import Holds, Quotas, Rules, Work, extra_of, gpus_of, work_lost
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.shares import Division
from scheduling.engine.state.units import EPS, GPUS
from scheduling.engine.state.victims import ANY, READY, Candidates

RATED_FOR = 200
"""Evictions after which rates are found anew."""


@inner
def order_leaf(work: Work, candidates: Candidates, q: int) -> None:
    """Puts ``candidates.slot`` in order for leaf ``q``."""
    if not candidates.order.leaf_sorted[q]:
        candidates.order.leaf_sorted[q] = True
        _order(
            work,
            candidates,
            candidates.slot,
            candidates.leaf_begin[q],
            candidates.leaf_begin[q + 1],
        )


@inner
def order_below(world: Session, c: int, top: int, own: int) -> int:
    """Fills ``order.below_slot`` with the candidates of class ``c`` below queue ``top``, in order: that of
    leaf ``own``, and of the others that hold more than their shares. Returns how many.
    """
    work, candidates, size = world.work, world.candidates, 0
    for q in range(candidates.order.leaf_sorted.size):
        if candidates.leaf_begin[q] == candidates.leaf_begin[q + 1] or not is_below(
            world.tree, q, top
        ):
            continue
        if q != own and _above(world.quotas, world.division, world.queues, c, q, PLAIN) <= EPS:
            continue
        for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
            if work.gpu_class[candidates.slot[k]] == c:
                candidates.order.below_slot[size] = candidates.slot[k]
                size += 1
    _order(work, candidates, candidates.order.below_slot, 0, size)
    return size


@inner
def order_node(work: Work, room: NodeRoom, candidates: Candidates, n: int) -> None:
    """Fills ``order.node_slot`` for node ``n``, in order; a gang is there once for each of its holds."""
    if candidates.order.node_sorted[n]:
        return
    candidates.order.node_sorted[n] = True
    at = candidates.order.node_begin[n] = candidates.order.node_used[0]
    h = room.holders.first[n]
    while h >= 0:
        v = room.holders.owner[h]
        if candidates.listed_in[v] == candidates.number[0]:
            candidates.order.node_slot[at] = v
            at += 1
        h = room.holders.after[h]
    candidates.order.node_end[n] = candidates.order.node_used[0] = at
    _order(work, candidates, candidates.order.node_slot, candidates.order.node_begin[n], at)


@inner
def rate_nodes(world: Session, stretch: int) -> None:
    """What a milli-GPU on each node costs at least, whichever work there leaves, and how many there are to
    take.

    Evictions only take candidates away, so these hold on as bounds; now and then they are found anew.
    """
    candidates = world.candidates
    if candidates.bounds.rated[0] < RATED_FOR:
        _rate_the_risen(world)
        return
    candidates.bounds.rated[0] = 0
    _forget_the_risen(candidates)
    forget_rates(candidates.blocks)
    for n in range(candidates.bounds.least_loss.shape[1]):
        candidates.bounds.least_loss[ANY, n] = candidates.bounds.least_loss[READY, n] = np.inf
        candidates.bounds.most_given[ANY, n] = candidates.bounds.most_given[READY, n] = 0
    for q in range(candidates.order.leaf_sorted.size):
        if candidates.leaf_begin[q] < candidates.leaf_begin[q + 1] and _has_too_much(
            world.quotas, world.division, world.queues, q, stretch
        ):
            find_shields(world.tree, world.ranks, candidates, q)
            _rate(world, q, True, stretch)
            _add_yields(world, q, stretch)


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
            _add_yields(world, q, PLAIN)
    if candidates.log.size == 0:
        _forget_the_risen(candidates)


@inner
def _forget_the_risen(candidates: Candidates) -> None:
    for q in range(candidates.bounds.risen.size):
        candidates.bounds.risen[q] = False


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
    if candidates.order.leaf_sorted[q]:
        _move_up(
            work,
            candidates,
            candidates.slot,
            candidates.leaf_begin[q],
            candidates.leaf_begin[q + 1],
            v,
        )
    h = holds.head[v]
    while h >= 0:
        n = holds.node[h]
        if candidates.order.node_sorted[n]:
            _move_up(
                work,
                candidates,
                candidates.order.node_slot,
                candidates.order.node_begin[n],
                candidates.order.node_end[n],
                v,
            )
        h = holds.next[h]


@inner
def _move_up(
    work: Work, candidates: Candidates, table: Ints, first: int, last: int, v: int
) -> None:
    for k in range(first, last):
        at = k
        while table[at] == v and at > first and _after(work, candidates, table[at - 1], v):
            table[at], table[at - 1] = table[at - 1], v
            at -= 1


@inner
def _is_ready(work: Work, rules: Rules, candidates: Candidates, v: int, above: float) -> bool:
    """Of candidates in a leaf that is ``above`` its share."""
    if extra_of(work, v) > 0:
        return True
    bound = rules.now < work.started[v] + candidates.shortest_min_run_s[work.priority[v]]
    enough = above >= gpus_of(work, v) - EPS
    return (
        enough
        and not bound
        and not candidates.log.leaves[v]
        and not eviction_limit_reached(work, rules, v)
    )


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
        h, one = head[v], _taken_by(work.need[GPUS, v])
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


@inner
def _leaves_too_little(
    quotas: Quotas, division: Division, queues: Queues, work: Work, v: int
) -> bool:
    """Its leaf would keep less than its nominal, whoever else stays: no reclaim may take it."""
    most = beyond_nominal(quotas, division, queues, work.gpu_class[v], work.queue[v])
    return extra_of(work, v) == 0 and gpus_of(work, v) > most


@inner
def _taken_by(gpus: int) -> int:
    """Milli-GPU that come free at most where a member leaves: with a share a whole GPU."""
    return max(gpus, ONE) if gpus > 0 else 0


@inner
def _add_yields(world: Session, q: int, stretch: int) -> None:
    """On each node leaf ``q``, just rated, gives no more than it holds there, nor than ``_gives`` says."""
    quotas, division, queues = world.quotas, world.division, world.queues
    candidates, holds, work = world.candidates, world.holds, world.work
    for k in range(candidates.leaf_begin[q], candidates.leaf_begin[q + 1]):
        v = candidates.slot[k]
        c = work.gpu_class[v]
        most = _gives(quotas, division, queues, candidates, c, q, stretch)
        beyond = candidates.by_queue.largest_gang[c, q]
        keeps = UNLIMITED
        if not candidates.by_queue.unbounded[q]:
            keeps = beyond_nominal(quotas, division, queues, c, q)
        h = holds.head[v] if most > 0 else -1
        while h >= 0:
            n = holds.node[h]
            candidates.bounds.most_given[READY, n] += min(most, candidates.bounds.scratch[READY, n])
            candidates.bounds.most_given[ANY, n] += min(
                most + beyond, candidates.bounds.scratch[ANY, n], keeps
            )
            candidates.bounds.scratch[ANY, n] = candidates.bounds.scratch[READY, n] = 0
            b = block_of(world.index.domains.position[n], c)
            for row in (ANY, READY):
                given = candidates.bounds.most_given[row, n]
                candidates.blocks.most_given[row, b] = max(
                    candidates.blocks.most_given[row, b], given
                )
            h = holds.next[h]


@inner
def _gives(
    quotas: Quotas,
    division: Division,
    queues: Queues,
    candidates: Candidates,
    c: int,
    q: int,
    stretch: int,
) -> int:
    """Milli-GPU of class ``c`` that leaf ``q`` holds too much of; a search for what is owed takes one gang
    beyond. Shares of GPUs and what elastic gangs can do without are not bounded so.
    """
    above = _above(quotas, division, queues, c, q, stretch)
    if above <= EPS:
        return 0
    return UNLIMITED if candidates.by_queue.unbounded[q] else int(above) + 1


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
