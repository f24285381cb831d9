"""The final set of victims: needless ones are put back, and the tests are repeated on the others."""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.sort import order_of
from scheduling.engine.eviction.rules import (
    BOTH,
    CAP,
    EACH_BUDGET,
    PREEMPT,
    PROTECTED,
    VictimRequest,
    given_by,
    held_by,
    overdraws,
)
from scheduling.engine.model import UNLIMITED
from scheduling.engine.placement.node_room import sit, slots_on
from scheduling.engine.placement.segments import place_segments
from scheduling.engine.placement.unlike import sit_member
from scheduling.engine.quota.fair_share import (
    LENT,
    PLAIN,
    below_nominal,
    common_ancestor,
    is_below,
    kept_by,
)
from scheduling.engine.quota.limits import may_evict
from scheduling.engine.quota.standing import STARTS, owes, past_limit, past_share, standing
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Holds, Nodes, Tree, Work
from scheduling.engine.state.nodes import NodeRoom, Seats
from scheduling.engine.state.roles import (
    many_roles,
    members_in,
    needs_segments,
    parts_of,
    shape_of,
    unit_of,
)
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, EPS, GPUS, LATER
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.statement import (
    LEAVES,
    MOVES,
    do_beside,
    first_beside,
    how_many,
    squeeze,
    strike_beside,
    unseat,
)


@inner
def must_lose_more(world: Session, request: VictimRequest, q: int) -> bool:
    """Of the chosen, not of the right: with the workload and without them, ``q`` would still be above its
    limit, or above what this search has to bring it inside of; or its leaf ``q`` would borrow beside a
    preemption what is kept back. Each is asked of the predicate, on the sums that the chosen leave.
    """
    if past_limit(world.quotas, world.queues, q, request.c, request.need):
        return True
    if not ends_inside(world, request, q, 0):
        return True
    own = request.rule == PREEMPT and q == world.work.queue[request.w]
    return own and borrows_kept(world, request)


@inner
def borrows_kept(world: Session, request: VictimRequest) -> bool:
    """Whether the workload would use above its share what a lending limit keeps back."""
    return bool(standing(world, request.w, request.c, request.need, STARTS).lender >= 0)


@inner
def ends_inside(world: Session, request: VictimRequest, q: int, gain: int) -> bool:
    """Arithmetic on sums that may come: whether ``q``, on the way from the workload up, ends inside its fair
    share, and inside its nominal for what is owed, where both kinds of victims leave and ``gain`` milli-GPU
    more of them. Reclaim alone starts below that, and preempt alone has to bring no queue inside.
    """
    tree, quotas, queues = world.tree, world.quotas, world.queues
    if request.rule < BOTH or tree.depth[q] <= tree.depth[request.top]:
        return True
    more = request.need - gain
    if past_share(queues, world.division, q, request.c, more):
        return False
    if request.rule == BOTH:
        return True
    return owes(tree, quotas, queues, q, _child_to(tree, world.work, request, q), request.c, more)


@inner
def _child_to(tree: Tree, work: Work, request: VictimRequest, q: int) -> int:
    """The child of ``q`` on the way from the workload, -1 in its leaf."""
    kid, up = -1, work.queue[request.w]
    while up != q:
        kid, up = up, tree.parent[up]
    return kid


@inner
def price_of(work: Work, out: Decisions, candidates: Candidates, k: int) -> float:
    """The price of the candidates; among equals fewer GPUs, at the price of a second each. A member given up
    costs less than any eviction, and nothing where its gang is evicted as well.
    """
    v = candidates.log.slot[k]
    if candidates.log.part[k] < 0:
        return candidates.price[v] + held_by(work, out, v) / 1000.0
    return 0.0 if candidates.log.leaves[v] else work.need[GPUS, v] / 1e9


@inner
def put_needless_back(world: Session, request: VictimRequest) -> None:
    """Put back, dearest first, every victim without whom seats and limits hold."""
    candidates = world.candidates
    first, price = candidates.log.first, np.empty(how_many(candidates))
    for k in range(price.size):
        price[k] = -price_of(world.work, world.out, candidates, first + k)
    for k in first + order_of(price):
        v = candidates.log.slot[k]
        if v < 0 or _is_merged(candidates, k) or first_beside(world.work, candidates, k) != k:
            continue
        do_beside(world, k, -1)
        if seats_hold(world.holds, world.room, v) and quota_holds(world, request):
            strike_beside(world.work, candidates, k)
        else:
            do_beside(world, k, 1)
    squeeze(candidates, candidates.log.first)


@inner
def seats_hold(holds: Holds, room: NodeRoom, v: int) -> bool:
    """No node of ``v`` is promised twice."""
    h = holds.head[v]
    while h >= 0:
        n, d = holds.node[h], holds.device[h]
        for r in range(room.free_later.shape[0]):
            if room.free_later[r, n] < 0:
                return False
        if d >= 0 and room.shared_later[n, d] > 1000:
            return False
        h = holds.next[h]
    return True


@inner
def quota_holds(world: Session, request: VictimRequest) -> bool:
    q = world.work.queue[request.w]
    while q > 0:
        if must_lose_more(world, request, q):
            return False
        q = world.tree.parent[q]
    return True


@inner
def is_within_cap(world: Session, request: VictimRequest) -> bool:
    """The eviction cap, asked for all victims together, and their budgets where it was not asked of each."""
    queues = world.queues
    if request.overlook == EACH_BUDGET and overdraws(
        world.tree, world.work, queues, world.candidates
    ):
        return False
    most = may_evict(world.work, world.rules, request.w, request.need)
    if request.overlook == CAP or queues.search.evicted[0] <= most:
        return True
    queues.search.forbidden[CAP] = 1
    return False


@inner
def is_still_fair(world: Session, request: VictimRequest) -> bool:
    """The tests again, on the final set: nothing kept back taken, no victim inside its share."""
    if borrows_kept(world, request) or first_unfair(world, request) >= 0:
        return False
    return request.stretch == PLAIN or _narrows(world, request)


@inner
def passes_all(world: Session, request: VictimRequest) -> bool:
    """Whether limits, the cap and fairness hold with this set."""
    if not quota_holds(world, request) or not is_within_cap(world, request):
        return False
    return bool(is_still_fair(world, request))


@inner
def _narrows(world: Session, request: VictimRequest) -> bool:
    """Whether what queues hold and their shares are closer to each other with the workload and without the
    chosen, summed over all queues, and in none further apart. Of what was LENT no more goes than is asked
    for.
    """
    work, out = world.work, world.out
    tree, usage, candidates = world.tree, world.queues.usage.gpus, world.candidates
    before, more, given = np.zeros(tree.parent.size), 0.0, 0
    for k in range(candidates.log.first, candidates.log.size):
        if candidates.log.slot[k] < 0:
            continue
        gpus, q = given_by(work, candidates, out, k), work.queue[candidates.log.slot[k]]
        given += gpus
        while q > 0:
            before[q] += gpus
            q = tree.parent[q]
    if request.stretch == LENT:
        return bool(given <= request.need)
    for q in range(1, before.size):
        fair, has = world.division.fair[request.c, q], usage[request.c, q]
        mine = request.need if is_below(tree, work.queue[request.w], q) else 0
        change = abs(has + mine - fair) - abs(has + before[q] - fair)
        if change > EPS:
            return False
        more += change
    return bool(more < -EPS)


@inner
def first_unfit(world: Session, request: VictimRequest) -> int:
    """The one of the chosen without whom another set may pass the tests that these fail: the first whose
    queues need not do without it, else the largest where a stretch lets less go; -1 if it is none of them.
    """
    work, out, candidates = world.work, world.out, world.candidates
    unfair = first_unfair(world, request)
    if unfair >= 0 or request.stretch == PLAIN:
        return int(unfair)
    largest, most = -1, 0
    for k in range(candidates.log.first, candidates.log.size):
        v = candidates.log.slot[k]
        if v >= 0 and candidates.log.part[k] == LEAVES and held_by(work, out, v) > most:
            largest, most = v, held_by(work, out, v)
    return int(largest)


@inner
def first_unfair(world: Session, request: VictimRequest) -> int:
    """The first of the chosen whose queues need not do without it, or one that they cannot do without; -1
    if none. Gaps are passed over.
    """
    if request.rule == PREEMPT:
        return -1
    for k in range(world.candidates.log.first, world.candidates.log.size):
        if world.candidates.log.slot[k] >= 0 and not _may_stay_gone(world, request, k):
            return int(world.candidates.log.slot[k])
    return int(_first_below_nominal(world, request))


@inner
def _still_above(world: Session, request: VictimRequest, k: int) -> bool:
    """With the ``k``-th of the chosen alone kept, each of its queues would be above what it keeps."""
    work, out, tree, queues = world.work, world.out, world.tree, world.queues
    v = world.candidates.log.slot[k]
    gpus = unit_of(work, v) * work.need[GPUS, v]
    if world.candidates.log.part[k] < 0:
        gpus = held_by(work, out, v)
    q = work.queue[v]
    meet = common_ancestor(tree, q, work.queue[request.w])
    while q != meet:
        keeps = kept_by(world, request.c, q, request.stretch, request.overlook != PROTECTED)
        if queues.usage.gpus[request.c, q] + gpus <= keeps + EPS:
            return False
        q = tree.parent[q]
    return True


@inner
def _first_below_nominal(world: Session, request: VictimRequest) -> int:
    """Of the chosen that leave another queue below its nominal the smallest without which it is not, else
    the largest; -1 where all queues keep theirs.
    """
    tree, work, log = world.tree, world.work, world.candidates.log
    best, fewest, most = -1, UNLIMITED, 0
    for k in range(log.first, log.size):
        v = log.slot[k]
        gpus = given_by(world.work, world.candidates, world.out, k) if v >= 0 else 0
        q = work.queue[v] if v >= 0 else 0
        meet = common_ancestor(tree, q, work.queue[request.w])
        while gpus > 0 and q != meet:
            lacks = below_nominal(world.quotas, world.division, world.queues, request.c, q, 0)
            if lacks > 0 and (gpus if gpus >= lacks else UNLIMITED) < fewest:
                best, fewest = v, gpus
            elif lacks > 0 and fewest == UNLIMITED and gpus > most:
                best, most = v, gpus
            q = tree.parent[q]
    return int(best)


@inner
def _may_stay_gone(world: Session, request: VictimRequest, k: int) -> bool:
    return bool(_is_merged(world.candidates, k) or _still_above(world, request, k))


@inner
def _is_merged(candidates: Candidates, k: int) -> bool:
    """Whether the ``k``-th of the chosen moves, or is a member of a gang that leaves whole."""
    part = candidates.log.part[k]
    return bool(part == MOVES or (part >= 0 and candidates.log.leaves[candidates.log.slot[k]]))


@inner
def do_without(world: Session, request: VictimRequest, whoever: bool) -> None:
    """Put back victims that a larger one made needless: other members sit in the room it leaves. Those whose
    queues need not do without them, or ``whoever`` it is.
    """
    candidates = world.candidates
    for k in range(candidates.log.first, candidates.log.size):
        if candidates.log.slot[k] < 0 or first_beside(world.work, candidates, k) != k:
            continue
        if _is_merged(world.candidates, k) or (not whoever and _may_stay_gone(world, request, k)):
            continue
        do_beside(world, k, -1)
        if quota_holds(world, request) and _sit_elsewhere(world, request):
            strike_beside(world.work, candidates, k)
        else:
            do_beside(world, k, 1)
    squeeze(candidates, candidates.log.first)


@inner
def _sit_elsewhere(world: Session, request: VictimRequest) -> bool:
    """Seat the workload afresh on what the victims leave, in the domain where it sits, or segment by segment
    in any; False if it cannot, and then it sits as before.
    """
    nodes, work, room, seats = world.nodes, world.work, world.room, world.seats
    w = request.w
    least, level = work.least[w], work.required[w]
    node, device = seats.node[:least].copy(), seats.device[:least].copy()
    home = nodes.domain[level, node[0]] if level != ANYWHERE else 0
    unseat(work, room, seats, w, least)
    sat = 0
    if needs_segments(work, w):
        sat = place_segments(world, w, request.c, least, least, LATER)
    for role in range(0 if needs_segments(work, w) else many_roles(work, w)):
        end = sat + members_in(work, w, role) * parts_of(work, w, role)
        sat = _sit_role(nodes, work, room, seats, request, role, home, sat, end)
    if sat == least:
        return True
    unseat(work, room, seats, w, sat)
    for i in range(least):
        seats.node[i], seats.device[i] = node[i], device[i]
        sit(room, work, w, node[i], device[i], LATER)
    return False


@inner
def _sit_role(
    nodes: Nodes,
    work: Work,
    room: NodeRoom,
    seats: Seats,
    request: VictimRequest,
    role: int,
    home: int,
    sat: int,
    end: int,
) -> int:
    """Seat members of one role in domain ``home`` until ``end`` seats are taken; returns how many are."""
    w, level = request.w, work.required[request.w]
    one = shape_of(work, w, role)
    for i in range(nodes.class_start[request.c], nodes.class_start[request.c + 1]):
        n = nodes.of_class[i]
        if level != ANYWHERE and nodes.domain[level, n] != home:
            continue
        while sat < end and slots_on(room, work, one, n, LATER) > 0:
            sat = sit_member(room, work, w, role, n, seats.node, seats.device, sat, LATER)
    return sat
