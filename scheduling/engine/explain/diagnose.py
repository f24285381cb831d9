"""Why a workload does not start: the first rule that stopped it, and the numbers behind it."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.division.demand import count_nodes, refuse_for_hours
from scheduling.engine.placement.never_fits import taken_by_larger
from scheduling.engine.placement.node_index import free_to, row_of, tally
from scheduling.engine.placement.node_room import free_of, slots_of_gpus
from scheduling.engine.placement.place import reach_of
from scheduling.engine.placement.segments import reach_by_segments
from scheduling.engine.placement.unlike import all_fit, fit_together
from scheduling.engine.quota.fair_share import kept_from
from scheduling.engine.quota.limits import pair_in
from scheduling.engine.quota.standing import (
    HOURS_SPENT,
    INSIDE,
    NO_TURN,
    OVER_LIMIT,
    PAST_NOMINAL,
    QUEUE_FULL,
    STARTS,
    USER_FULL,
    Standing,
    past_share,
    standing,
)
from scheduling.engine.reasons.figures import (
    BY_SEGMENTS,
    FAIR_SHARE,
    FOR_OTHER,
    FREE_GPUS,
    ITS_NODES,
    JOB_LIMIT,
    LIMIT,
    NO_CPUS,
    NO_MEMORY,
    NO_OTHER,
    NOT_PREEMPTIBLE,
    TOGETHER,
    TURN,
    USER_LIMIT,
)
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Nodes, Quotas, Rules, Tree, Work
from scheduling.engine.state.nodes import NodeIndex, NodeRoom
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.roles import (
    has_roles,
    many_roles,
    members_in,
    needs_segments,
    segment_size,
    shape_of,
)
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, BACKFILL, CPUS, GPUS, MEMORY, NOW, RAW
from scheduling.engine.statement.lines import decide


@inner
def conclude(world: Session, w: int, c: int, first: int) -> None:
    """Decide that ``w`` waits, for what stands against it on class ``c``.

    ``first`` is the workload of its queue that goes before it, -1 if none: that is the reason only
    where nothing else is.
    """
    need = world.work.least[w] * world.work.need[GPUS, w]
    reason = _quota_reason(world, w, c, need)
    if reason < 0:
        reason = _room_reason(world, w, c, need)
    if reason < 0 and first >= 0:
        reason = _turn_reason(world, w, c, first)
    decide(world.out, w, codes.WAIT, reason if reason >= 0 else codes.FRAGMENTED, c, 0)


@inner
def _quota_reason(world: Session, w: int, c: int, need: int) -> int:
    """What the predicate says against ``need`` more, with its figures; -1 if it says nothing."""
    stands = standing(world, w, c, need, STARTS)
    if stands.says == QUEUE_FULL:
        return _quote_full(world.tree, world.queues, world.out, w, stands.queue)
    if stands.says == USER_FULL:
        return _quote_user(
            world.tree, world.queues, world.out, w, stands.queue,
            pair_in(world.tree, world.work, world.users, w, stands.queue),
        )  # fmt: skip
    if stands.says == HOURS_SPENT:
        refuse_for_hours(world, w, c)
        return codes.HOURS_SPENT
    if stands.says == OVER_LIMIT:
        return _quote_limit(world.quotas, world.queues, world.out, w, c, stands.queue, need)
    if stands.says == PAST_NOMINAL:
        return _quote_fixed(
            world.division, world.quotas, world.queues, world.out, w, c, stands.queue, need
        )
    return -1 if stands.says == INSIDE else _share_reason(world, w, c, need, stands)


@inner
def _share_reason(world: Session, w: int, c: int, need: int, stands: Standing) -> int:
    """Of work that would be on loan; -1 where it may be, or would be but for what others claim."""
    queues, out = world.queues, world.out
    free, lender = _free(world.nodes, world.room, world.index, c), stands.lender
    left = lender < 0 and free >= need
    claimed = lender >= 0 and free >= need and _is_kept_for_another(world, w, c)
    if claimed or (left and stands.turn != NO_TURN):
        return -1
    x, q = stands.share, world.work.queue[w]
    out.blame[w], out.figures[w, FAIR_SHARE.holds] = x, queues.usage.gpus[c, x]
    out.figures[w, FAIR_SHARE.fair_share] = world.division.fair[c, x]
    out.figures[w, FAIR_SHARE.needs], out.figures[w, FAIR_SHARE.free] = need, free
    out.figures[w, FAIR_SHARE.kept_back] = (
        kept_from(world, q, c, need, lender) if lender >= 0 else 0
    )
    out.figures[w, FAIR_SHARE.evictions] = world.work.evictions[w] if left else 0.0
    above = past_share(queues, world.division, x, c, 0)
    return codes.ABOVE_FAIR_SHARE if above else codes.WAITS_FOR_QUOTA


@inner
def _quote_full(tree: Tree, queues: Queues, out: Decisions, w: int, x: int) -> int:
    """How many run in queue ``x``, as many as may."""
    out.blame[w] = x
    out.figures[w, JOB_LIMIT.running] = queues.usage.running[x]
    out.figures[w, JOB_LIMIT.max_running] = tree.most_running[x]
    return codes.QUEUE_AT_JOB_LIMIT


@inner
def _quote_user(tree: Tree, queues: Queues, out: Decisions, w: int, x: int, pair: int) -> int:
    """What its user runs and holds in queue ``x``, as much as it may."""
    usage = queues.usage
    out.blame[w] = x
    out.figures[w, USER_LIMIT.running] = usage.user_running[pair]
    out.figures[w, USER_LIMIT.max_running] = tree.most_per_user[x]
    out.figures[w, USER_LIMIT.holds] = usage.user_gpus[pair]
    out.figures[w, USER_LIMIT.max_gpus] = tree.most_gpus_per_user[x]
    return codes.USER_AT_LIMIT


@inner
def _is_kept_for_another(world: Session, w: int, c: int) -> bool:
    """Whether what is free would do, were it not claimed by another."""
    least = world.work.least[w]
    if not all_fit(world, w, c, least, RAW) or _kept_for(world, w, c) < 0:
        return False
    return not all_fit(world, w, c, least, NOW)


@inner
def _quote_limit(
    quotas: Quotas, queues: Queues, out: Decisions, w: int, c: int, x: int, need: int
) -> int:
    """How queue ``x`` stands, which is at its limit."""
    out.blame[w], out.figures[w, LIMIT.needs] = x, need
    out.figures[w, LIMIT.holds] = queues.usage.gpus[c, x]
    out.figures[w, LIMIT.limit] = quotas.cap[c, x]
    out.figures[w, LIMIT.borrowable] = quotas.limit[c, x]
    return codes.AT_LIMIT


@inner
def _quote_fixed(
    division: Division,
    quotas: Quotas,
    queues: Queues,
    out: Decisions,
    w: int,
    c: int,
    x: int,
    need: int,
) -> int:
    """How queue ``x`` stands, which work that cannot be preempted would lift too high."""
    out.blame[w], out.figures[w, NOT_PREEMPTIBLE.needs] = x, need
    out.figures[w, NOT_PREEMPTIBLE.holds] = queues.usage.held_fixed[c, x]
    out.figures[w, NOT_PREEMPTIBLE.nominal] = quotas.nominal[c, x]
    out.figures[w, NOT_PREEMPTIBLE.fair_share] = division.fair[c, x]
    return codes.NON_PREEMPTIBLE


@inner
def _free(nodes: Nodes, room: NodeRoom, index: NodeIndex, c: int) -> int:
    """Unclaimed free GPUs of class ``c``, shares of GPUs included."""
    tally(nodes, room, index, c)
    return int(index.free_by_class.sum[c])


@inner
def _room_reason(world: Session, w: int, c: int, need: int) -> int:
    """The quota would allow it: too few free, none unclaimed, the wrong domain, or scattered; of the nodes
    that it may use.
    """
    nodes, room, work, index, out = world.nodes, world.room, world.work, world.index, world.out
    free, some = free_to(nodes, work, room, index, w, c)
    least = work.least[w]
    row = row_of(world, w, c, NOW)
    slots, find_seats = index.total[row], all_fit(world, w, c, least, NOW)
    out.blame[w] = work.queue[w]
    out.figures[w, FREE_GPUS.free], out.figures[w, FREE_GPUS.needs] = free, need
    out.figures[w, FREE_GPUS.nodes], out.figures[w, FREE_GPUS.fits_members] = some, slots
    is_kept = not find_seats and all_fit(world, w, c, least, RAW)
    first = _kept_for(world, w, c) if is_kept else -1
    if first >= 0:
        out.rival[w] = first
        nodes_of = world.queues.reservations
        until = nodes_of.until_s[c] if nodes_of.slot[c] == first else np.inf
        out.figures[w, FOR_OTHER.starts_in_s] = _seconds_to(world.rules, until)
        return codes.RESERVED_FOR_OTHER
    if free < need or not find_seats:
        lack = codes.NO_FREE_GPUS
        if free >= need:
            lack = _lack_beside_gpus(nodes, work, room, out, w, c)
        scarce = lack in (codes.NO_FREE_GPUS, codes.FRAGMENTED)
        bound = scarce and _is_bound_to_some(nodes, work, room, out, w, c)
        return codes.NO_ROOM_ON_ITS_NODES if bound else lack
    if work.required[w] != ANYWHERE:
        many = reach_of(world, row, c, work.required[w], least)
        out.figures[w, TOGETHER.fits_together] = many
        if many < least or (has_roles(work, w) and not fit_together(world, w, c, NOW)):
            return codes.NO_ROOM_IN_TOPOLOGY
    if needs_segments(work, w):
        many = reach_by_segments(nodes, work, index, row, w, c)
        out.figures[w, BY_SEGMENTS.fits_together] = many
        out.figures[w, BY_SEGMENTS.segment] = segment_size(work, w)
        if many < least:
            return codes.NO_ROOM_FOR_SEGMENTS
    return -1


@inner
def _is_bound_to_some(
    nodes: Nodes, work: Work, room: NodeRoom, out: Decisions, w: int, c: int
) -> bool:
    """Whether ``w`` may use some nodes of class ``c`` only: quotes how many, of how many."""
    some, every = count_nodes(nodes, work, room, w, c)
    if some < every:
        out.figures[w, ITS_NODES.nodes_allowed] = some
        out.figures[w, ITS_NODES.nodes_in_class] = every
    return some < every


@inner
def _quote_lack(work: Work, out: Decisions, w: int, one: int, r: int, most: int) -> int:
    """What a member, as in slot ``one``, needs of resource ``r``, and the ``most`` that a node has left;
    returns the reason.
    """
    figures, each = out.figures, work.need[r, one]
    if r == CPUS:
        figures[w, NO_CPUS.member_cpus], figures[w, NO_CPUS.most_cpus] = each, most
        return codes.NO_FREE_CPUS
    if r == MEMORY:
        figures[w, NO_MEMORY.member_mib], figures[w, NO_MEMORY.most_mib] = each, most
        return codes.NO_FREE_MEMORY
    figures[w, NO_OTHER.member_amount], figures[w, NO_OTHER.most_amount] = each, most
    figures[w, NO_OTHER.other] = r
    return codes.NO_FREE_OTHER


@inner
def _lack_beside_gpus(
    nodes: Nodes, work: Work, room: NodeRoom, out: Decisions, w: int, c: int
) -> int:
    """The free GPUs are scattered; or they lie so that the least members would fit, but their nodes lack
    CPUs, memory or something else: quotes what a member needs and the most that such a node has left.
    """
    last = work.need.shape[0] - 1
    for role in range(many_roles(work, w)):
        one, least, by_gpus = shape_of(work, w, role), members_in(work, w, role), 0
        for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
            by_gpus += slots_of_gpus(room, work, one, nodes.of_class[i], NOW)
        if by_gpus < least + taken_by_larger(work, w, role):
            return codes.FRAGMENTED
        for r in range(CPUS, last + 1):
            slots, most = _slots_beside(nodes, work, room, one, c, r)
            if slots < least or (r == last and one == w):
                return _quote_lack(work, out, w, one, r, most)
    return codes.FRAGMENTED


@inner
def _slots_beside(
    nodes: Nodes, work: Work, room: NodeRoom, w: int, c: int, r: int
) -> tuple[int, int]:
    """Members that fit by GPUs and resource ``r``, and the most of it on a node that lacks it."""
    found, most, need = 0, 0, max(1, work.need[r, w])
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        slots, free = slots_of_gpus(room, work, w, n, NOW), max(0, free_of(room, r, n, NOW))
        if free // need < slots:
            slots, most = free // need, max(most, free)
        found += slots
    return found, most


@inner
def _kept_for(world: Session, w: int, c: int) -> int:
    """Which work has claimed free GPUs that ``w`` could use: the holder of nodes, else the first who was
    promised room; -1 if nobody.
    """
    holder, promised = world.queues.reservations.slot[c], world.queues.starts.first_promised[c]
    if holder < 0 or promised < 0:
        return max(holder, promised)
    unpromised = all_fit(world, w, c, world.work.least[w], BACKFILL)
    return holder if unpromised else promised


@inner
def _turn_reason(world: Session, w: int, c: int, first: int) -> int:
    work, queues, q = world.work, world.queues, world.work.queue[w]
    need = work.least[first] * work.need[GPUS, first]
    until = queues.turns.until_s[c, q] if queues.turns.slot[c, q] == first else np.inf
    out = world.out
    out.blame[w], out.rival[w] = q, first
    out.figures[w, TURN.holds] = queues.usage.gpus[c, q]
    out.figures[w, TURN.fair_share] = world.division.fair[c, q]
    out.figures[w, TURN.first_needs] = need
    out.figures[w, TURN.turn_in_s] = _seconds_to(world.rules, until)
    return codes.WAITS_FOR_TURN


@inner
def _seconds_to(rules: Rules, until: float) -> float:
    """0 if nobody knows."""
    return max(0.0, until - rules.now) if until < np.inf else 0.0
