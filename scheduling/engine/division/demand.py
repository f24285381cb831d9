"""What queues hold and ask for: the input of the division, summed from the workloads."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.placement.never_fits import fits_empty
from scheduling.engine.placement.node_room import may_use
from scheduling.engine.quota.limits import used_hours
from scheduling.engine.quota.standing import (
    ASKS,
    is_stopped,
    never_holds,
    past_limits_beside,
    spent_hours,
)
from scheduling.engine.quota.usage import hold, sum_up_usage
from scheduling.engine.reasons.figures import HOURS, NEVER
from scheduling.engine.state.input import Holds, Nodes, Tree, Users, Work, gpus_of
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.queues import Demand, Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS, RUNNING
from scheduling.engine.statement.operations import note_coming

DENSE, LARGE = 8, 1 << 14
"""Where tables are too large for the cache, one in so many slots is worth a pass over all of them as they
lie in memory.
"""


@inner
def clear_demand(world: Session) -> None:
    """Nothing is demand but what is left out of the pending order. There to divide is what nodes offer,
    and what is held on seats that they offer no more: work there takes nothing from what is left.
    """
    nodes, queues = world.nodes, world.queues
    demand = queues.demand
    for c in range(demand.supply.size):
        demand.supply[c] = nodes.capacity[c]
    for n in range(nodes.gpu_class.size):
        beyond = _held_on(world.work, world.holds, world.room, n) - nodes.size[GPUS, n]
        demand.supply[nodes.gpu_class[n]] += max(0, beyond)
    for c in range(demand.supply.size):
        for q in range(demand.queued.size):
            demand.requests[c, q] = demand.asked_outside[c, q]
            demand.charged_micro[c, q] = 0
    for q in range(demand.queued.size):
        demand.queued[q] = 0
    if queues.limits.any:
        for pair in range(demand.user_asks.size):
            demand.user_queued[pair] = demand.user_asks[pair] = 0


@inner
def _held_on(work: Work, holds: Holds, room: NodeRoom, n: int) -> int:
    """Milli-GPU that work which stays holds on node ``n``."""
    holders, gpus, h = room.holders, 0, room.holders.first[n]
    while h >= 0:
        w = holders.owner[h]
        if work.phase[w] == RUNNING and not work.leaving[w]:
            gpus += holds.members[h] * work.need[GPUS, w]
        h = holders.after[h]
    return gpus


def ask_outside(demand: Demand, requests: Ints | int) -> None:
    """``asked`` [class, queue] is demand of what is left out of the pending order."""
    demand.asked_outside[...] = requests


@inner
def sum_held(world: Session) -> None:
    """Running work: what it holds, the part that cannot be called back, what it asks for with that, and the
    usage that starts of late are charged before they use it. Leaving work holds no quota any more.

    Where many run they are read in the order of memory.
    """
    tree = world.tree
    work, queues, ordering, rules = world.work, world.queues, world.ordering, world.rules
    slots, last, used = work.phase.size, 0.0, 0.0
    many = slots > LARGE and ordering.running.size[0] * DENSE > slots
    for k in range(slots if many else ordering.running.size[0]):
        w = k if many else ordering.running.slot[k]
        if work.phase[w] != RUNNING:
            continue
        q, c, gpus = work.queue[w], work.gpu_class[w], gpus_of(work, w)
        if work.leaving[w]:
            note_coming(tree, work, world.room, queues, w, gpus)
        elif q < 0:
            queues.demand.supply[c] = max(0, queues.demand.supply[c] - gpus)
        else:
            queues.demand.requests[c, q] += _wants(work, w, work.members[w])
            hold(world, w, c, gpus)
            ahead = work.started[w] + rules.charge - rules.now
            if ahead > 0.0 and rules.history > 0.0:
                if ahead != last:
                    last, used = ahead, 1.0 - 2.0 ** (-ahead / rules.half_life)
                queues.demand.charged_micro[c, q] += int(1000.0 * gpus * used)
    sum_up_usage(tree, queues)
    _sum_up_charges(tree, queues)


@inner
def _wants(work: Work, w: int, members: int) -> int:
    """Milli-GPU that ``w``, which runs with ``members``, holds and, if it is elastic, could hold."""
    most = max(members, work.most[w]) if work.elastic[w] else members
    return most * work.need[GPUS, w]


@inner
def _sum_up_charges(tree: Tree, queues: Queues) -> None:
    charged, parent = queues.demand.charged_micro, tree.parent
    for c in range(charged.shape[0]):
        for q in range(parent.size - 1, 0, -1):
            charged[c, parent[q]] += charged[c, q]


@inner
def sum_asked(world: Session) -> None:
    """Waiting work: settle what cannot start whatever happens, and count what the others ask for.

    Where limits on workloads are set, the first in line count, and where only some are asked, they alone
    are in line. Otherwise each kind asks for all of it at once. Work that is leaving asks again.
    """
    ordering = world.ordering
    if world.queues.limits.any or ordering.pending.narrowed[0]:
        for k in range(ordering.pending.size[0]):
            _settle_or_ask(world, ordering.pending.slot[k])
    else:
        _ask_by_shape(world)
    for k in range(ordering.running.size[0]):
        w = ordering.running.slot[k]
        if world.work.leaving[w] and world.work.queue[w] > 0:
            _ask(world, w, 1)


@inner
def _ask_by_shape(world: Session) -> None:
    """Those of a kind ask alike. One by one are asked those held back, of no kind, or of one that cannot
    start whatever happens.
    """
    tree, work, ordering, shapes = world.tree, world.work, world.ordering, world.shapes
    special = ordering.pending.shapeless > 0
    for shape in range(shapes.number):
        w, many = shapes.first[shape], shapes.waiting[shape] - shapes.on_hold[shape]
        shapes.is_counted[shape] = many > 0 and _is_in_line(tree, work, w) and _ask(world, w, many)
        special = special or (many > 0 and not shapes.is_counted[shape])
    for k in range(ordering.pending.size[0] if special else 0):
        w = ordering.pending.slot[k]
        if shapes.of[w] < 0 or not shapes.is_counted[shapes.of[w]] or work.on_hold[w]:
            _settle_or_ask(world, w)


@inner
def _is_in_line(tree: Tree, work: Work, w: int) -> bool:
    """Whether queue and class of the kind of ``w`` are known and take asks."""
    q = work.queue[w]
    return bool(q >= 0 and work.wish[0, w] >= 0 and not is_stopped(tree, q))


@inner
def _settle_or_ask(world: Session, w: int) -> None:
    work, q = world.work, world.work.queue[w]
    reason = codes.UNDECIDED
    if q < 0:
        reason = codes.MISROUTED
    elif work.wish[0, w] < 0:
        reason = codes.NO_SUCH_CLASS
    elif work.on_hold[w] or is_stopped(world.tree, q):
        reason = codes.HELD
    elif not _ask(world, w, 1):
        _refuse_for_good(world, w)
    if reason != codes.UNDECIDED:
        world.out.action[w], world.out.reason[w] = codes.WAIT, reason
        world.out.gpu_class[w], world.out.blame[w] = work.wish[0, w], q


@inner
def _ask(world: Session, w: int, many: int) -> bool:
    """Add what ``many`` like ``w`` ask for to its queue in each class they may run on; False if there is
    none. Where limits on workloads are set, they are asked one by one.
    """
    queues, work, fits, may = world.queues, world.work, 0, True
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        if not _may_run_on(world, w, c):
            continue
        if fits == 0 and queues.limits.any:
            may = count_ask(world.tree, work, queues, world.users, w)
        fits += 1
        if may:
            queues.demand.requests[c, work.queue[w]] += many * work.most[w] * work.need[GPUS, w]
    return fits > 0


@inner
def _may_run_on(world: Session, w: int, c: int) -> bool:
    """Whether it could start there on empty nodes, under the limits and hours as they are."""
    tree, quotas, nodes, work = world.tree, world.quotas, world.nodes, world.work
    rules, queues, seats = world.rules, world.queues, world.seats
    if never_holds(tree, quotas, work, queues, w, c) >= 0 or not fits_empty(
        nodes, work, seats, w, c
    ):
        return False
    return bool(spent_hours(tree, quotas, rules, queues, work.queue[w], c) < 0)


@inner
def ask_as_decided(world: Session, requests: Ints) -> None:
    """Bring ``asked`` [class, leaf] from what was asked for before this cycle to what is asked for after it:
    what starts, or will by its claim, asks for what it holds, of one class alone, and what is evicted asks
    for all its classes again.
    """
    work, out = world.work, world.out
    for k in range(out.size[0]):
        w = out.order[k]
        c, q = out.gpu_class[w], work.queue[w]
        if out.action[w] == codes.ADMIT or out.reason[w] == codes.AWAITS_VICTIMS:
            requests[c, q] += _wants(work, w, out.members[w])
            _ask_everywhere(world, w, requests, -1)
        elif out.action[w] == codes.EVICT:
            requests[c, q] -= _wants(work, w, work.members[w])
            _ask_everywhere(world, w, requests, 1)


@inner
def _ask_everywhere(world: Session, w: int, requests: Ints, sign: int) -> None:
    """Add (1) or take away (-1) what waiting ``w`` asks for, in each class it may run on."""
    work = world.work
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c >= 0 and _may_run_on(world, w, c):
            requests[c, work.queue[w]] += sign * work.most[w] * work.need[GPUS, w]


@inner
def _refuse_for_good(world: Session, w: int) -> None:
    """It fits no class, or only those whose hours are spent."""
    tree, quotas, nodes, queues = world.tree, world.quotas, world.nodes, world.queues
    seats = world.seats
    work, spent = world.work, -1
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        if never_holds(tree, quotas, work, queues, w, c) < 0 and fits_empty(
            nodes, work, seats, w, c
        ):
            spent = c
    if spent >= 0:
        refuse_for_hours(world, w, spent)
    else:
        c = work.wish[0, w]
        refuse_forever(world, w, c, never_holds(tree, quotas, work, queues, w, c))


@inner
def count_ask(tree: Tree, work: Work, queues: Queues, users: Users, w: int) -> bool:
    """``w`` is one more that asks, if the predicate says that limits let it run beside those before it."""
    gpus, pair = work.most[w] * work.need[GPUS, w], work.user[w]
    full, user = past_limits_beside(tree, work, queues, users, w, gpus, ASKS)
    if full >= 0 or user >= 0:
        return False
    queues.demand.queued[work.queue[w]] += 1
    while pair >= 0:
        queues.demand.user_queued[pair] += 1
        queues.demand.user_asks[pair] += gpus
        pair = users.above[pair]
    return True


@inner
def refuse_for_hours(world: Session, w: int, c: int) -> None:
    """``w`` cannot start before the next period: the GPU-hours of class ``c`` are spent."""
    rules = world.rules
    x = spent_hours(world.tree, world.quotas, rules, world.queues, world.work.queue[w], c)
    quotas, out = world.quotas, world.out
    out.action[w], out.reason[w], out.gpu_class[w] = codes.WAIT, codes.HOURS_SPENT, c
    out.blame[w] = x
    out.figures[w, HOURS.used_gpu_hours] = used_hours(quotas, rules, x, c)
    out.figures[w, HOURS.budget_gpu_hours] = quotas.budget_hours[c, x]
    out.until[w] = quotas.period_ends[c, x] if quotas.period_ends[c, x] > rules.now else 0.0


@inner
def refuse_forever(world: Session, w: int, c: int, x: int) -> None:
    """``w`` can never start: queue ``x`` allows too little, or (-1) the nodes are too few or small."""
    work, need = world.work, world.work.least[w] * world.work.need[GPUS, w]
    out = world.out
    out.action[w], out.reason[w], out.gpu_class[w] = codes.WAIT, codes.NEVER_FITS, c
    most = world.quotas.cap[c, x] if x >= 0 else world.nodes.capacity[c]
    out.blame[w] = x
    out.figures[w, NEVER.needs], out.figures[w, NEVER.most] = need, most
    out.figures[w, NEVER.min_members] = work.least[w]
    out.figures[w, NEVER.per_member] = work.need[GPUS, w]
    some, every = count_nodes(world.nodes, work, world.room, w, c)
    if x < 0 and some < every:
        out.figures[w, NEVER.nodes_allowed] = some
        out.figures[w, NEVER.nodes_in_class] = every


@inner
def count_nodes(nodes: Nodes, work: Work, room: NodeRoom, w: int, c: int) -> tuple[int, int]:
    """How many nodes of class ``c`` there are that ``w`` may use, and how many in all."""
    some = 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        some += int(may_use(room, work, w, nodes.of_class[i]))
    return some, nodes.class_start[c + 1] - nodes.class_start[c]
