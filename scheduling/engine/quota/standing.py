"""What work may hold: the one predicate, and the only place that says so.

Entitlement asks it before it counts a demand, admission before a start, a search before anybody leaves and
of the final set, claims before they lapse, growth before each member, and ``explain`` for the rule that said
no. So nobody leaves for work that admission refuses, and what is told is what decided.

For each queue ``x`` above the work, with ``held`` of the usage, ``fair`` of the division:

    inside     held[x] + gpus <= fair[x]
    rounded    gpus < 2 (fair[x] - held[x]): more than half of it lies inside, so ``x`` ends closer
    on loan    neither: on what others lend
    forbidden  by a limit, hours, nominal (work that cannot be preempted), or what lenders keep back
    owed       held[x] + gpus <= nominal[x], what children hold beyond their own nominal aside

Each of these comparisons is a function here, and ``standing`` their sum. A search that tries victims asks
single ones of single queues, on sums that leave the victims out.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Flags
from scheduling.engine.quota.fair_share import sharer, takes_kept
from scheduling.engine.quota.limits import are_hours_spent, eviction_limit_reached
from scheduling.engine.state.input import Quotas, Ranks, Rules, Tree, Users, Work
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS, GPUS, PENDING

INSIDE, ROUNDED_UP, ON_LOAN = 0, 1, 2
NOT_LENT, PAST_NOMINAL, OVER_LIMIT, HOURS_SPENT = 3, 4, 5, 6
USER_FULL, QUEUE_FULL, STOPPED = 7, 8, 9
"""What it says: up to ON_LOAN the work may hold it; of the rules that forbid it the last is told."""
STANDS, GROWS, STARTS, CLAIMS, ASKS = 0, 1, 2, 3, 4
"""What is asked: whether all holds as it stands, with 0 more; with more for what runs; with one workload
more; or with that by the claim of an earlier plan, against which neither shares speak nor a quota that is
lowered while its grace lasts; or, of limits beside quota alone, with one more beside all who asked before it.
"""
NO_TURN = 1 << 30
"""The ``turn`` of work that was evicted so often that it starts on no loan."""


class Standing(NamedTuple):
    """How work stands with so much more. Queues are the lowest of its path, -1 if none."""

    says: int
    queue: int  # that says so
    fixed: int  # whose nominal it passes though it cannot be preempted, whatever else forbids it
    lender: int  # from which it would borrow what lenders keep back, likewise
    share: int  # whose share it passes: 0, the root, where all is inside
    rounded: int  # the same where a gang may pass a share by less than half of itself
    levels: int  # of the tree at which a share is passed
    turn: int  # the first pass of a plan in which it may start, or NO_TURN
    late: bool  # a limit is full until what leaves is gone


@inner
def standing(world: Session, w: int, c: int, gpus: int, how: int) -> Standing:
    """Of ``w`` with ``gpus`` more of class ``c``."""
    tree, quotas, queues, division = world.tree, world.quotas, world.queues, world.division
    q, full, user = world.work.queue[w], -1, -1
    if queues.limits.any:
        full, user = past_limits_beside(tree, world.work, queues, world.users, w, gpus, how)
    levels, share = past_shares(tree, queues, division, q, c, gpus)
    rounded = _past_half(tree, queues, division, share, c, gpus)
    at = held_against(tree, world.work, world.ordering.merit.promise_due, w)
    turn = levels if at == q else past_shares(tree, queues, division, at, c, gpus)[0]
    former, rules, claims, fixed = world.former, world.rules, how == CLAIMS, -1
    if turn > 0 and how == STARTS and eviction_limit_reached(world.work, rules, w):
        turn = NO_TURN
    hours = spent_hours(tree, quotas, rules, queues, q, c)
    limit, late = _past_limit(tree, quotas, former, rules, queues, q, c, gpus, claims)
    if not world.ranks.preemptible[world.work.priority[w]]:
        fixed = _past_nominal(tree, quotas, former, rules, queues, division, q, c, gpus, claims)
    lender = takes_kept(world, q, c, gpus) if levels > 0 or how == STANDS else -1
    says, queue = ON_LOAN if rounded > 0 else ROUNDED_UP if levels > 0 else INSIDE, share
    stop = q if how in (GROWS, STARTS) and is_stopped(tree, q) else -1
    forbids = (lender, fixed, limit, hours, user, full, stop)
    for k in range(len(forbids)):
        if forbids[k] >= 0:
            says, queue = NOT_LENT + k, forbids[k]
    return Standing(says, queue, fixed, lender, share, rounded, levels, turn, late)


@inner
def past_shares_of(world: Session, w: int, c: int, gpus: int) -> tuple[int, int]:
    """``levels`` and ``share`` alone, of what asks for no more: most asks end there."""
    q = world.work.queue[w]
    return past_shares(world.tree, world.queues, world.division, q, c, gpus)


@inner
def turn_of(world: Session, w: int, c: int, gpus: int) -> int:
    """``turn`` alone, of what would start, likewise."""
    at = held_against(world.tree, world.work, world.ordering.merit.promise_due, w)
    turn = past_shares(world.tree, world.queues, world.division, at, c, gpus)[0]
    often = turn > 0 and eviction_limit_reached(world.work, world.rules, w)
    return NO_TURN if often else turn


@inner
def may_hold(stands: Standing, turn: int) -> bool:
    """Whether nothing forbids it in pass ``turn`` of a plan: nobody borrows before all inside were asked."""
    return bool(stands.turn <= turn and stands.says <= ON_LOAN)


@inner
def past_share(queues: Queues, division: Division, q: int, c: int, gpus: int) -> bool:
    """Whether queue ``q`` alone would hold more than its share."""
    return bool(queues.usage.gpus[c, q] + gpus > division.fair[c, q] + EPS)


@inner
def ends_as_close(
    tree: Tree, queues: Queues, division: Division, q: int, top: int, c: int, gpus: int
) -> bool:
    """Whether no queue from ``q`` up to below ``top`` would be further past its share, with ``gpus`` more
    or (negative) fewer, than it is off it now.
    """
    while q != top:
        past = queues.usage.gpus[c, q] - division.fair[c, q]
        if past + gpus > abs(past) + EPS:
            return False
        q = tree.parent[q]
    return True


@inner
def past_limit(quotas: Quotas, queues: Queues, q: int, c: int, gpus: int) -> bool:
    """Whether queue ``q`` alone would hold more than its limit."""
    return bool(queues.usage.gpus[c, q] + gpus > quotas.cap[c, q])


@inner
def is_stopped(tree: Tree, q: int) -> bool:
    """Whether queue ``q`` is on hold or draining: nothing starts or grows there."""
    return bool(tree.stop[q] > 0)


@inner
def past_shares(
    tree: Tree, queues: Queues, division: Division, q: int, c: int, gpus: int
) -> tuple[int, int]:
    """At how many levels from ``q`` up a share is passed, and the lowest such queue, 0 if none: below it, and
    only there, what siblings hold past their shares may be taken back.
    """
    levels, lowest = 0, 0
    while q > 0:
        if past_share(queues, division, q, c, gpus):
            levels, lowest = levels + 1, lowest if levels > 0 else q
        q = tree.parent[q]
    return levels, lowest


@inner
def owes(tree: Tree, quotas: Quotas, queues: Queues, q: int, kid: int, c: int, gpus: int) -> bool:
    """Whether the nominal of queue ``q`` covers ``gpus`` more for its child ``kid`` whose own nominal does,
    or (-1) for itself or a child that has none. What children hold above theirs is lent and comes back first.
    """
    usage, nominal = queues.usage.gpus, quotas.nominal
    if usage[c, q] + gpus <= nominal[c, q]:
        return True
    if kid < 0:
        return False
    total = 0
    for i in range(tree.kid_start[q], tree.kid_start[q + 1]):
        sibling = tree.kids[i]
        total += min(usage[c, sibling] + (gpus if sibling == kid else 0), nominal[c, sibling])
    return bool(total <= nominal[c, q])


@inner
def never_holds(tree: Tree, quotas: Quotas, work: Work, queues: Queues, w: int, c: int) -> int:
    """The lowest queue whose limit is below the least that ``w`` needs, were nothing held; -1 if none."""
    need, q = work.least[w] * work.need[GPUS, w], work.queue[w]
    if need <= queues.limits.ceiling[c, q]:
        return -1
    while q > 0:
        if quotas.cap[c, q] < need:
            return q
        q = tree.parent[q]
    return -1


@inner
def would_hold(
    ranks: Ranks, quotas: Quotas, work: Work, division: Division, w: int, c: int
) -> bool:
    """Whether the share of its leaf, and nominal where it cannot be preempted, hold ``w`` alone."""
    q = work.queue[w]
    inside = division.fair[c, q]
    if not ranks.preemptible[work.priority[w]]:
        inside = min(inside, float(quotas.nominal[c, q]))
    return bool(work.least[w] * work.need[GPUS, w] <= inside + EPS)


@inner
def spent_hours(tree: Tree, quotas: Quotas, rules: Rules, queues: Queues, q: int, c: int) -> int:
    """The lowest queue whose GPU-hours of class ``c`` are spent, -1 if none."""
    while queues.limits.hours_spent[c] and q > 0:
        if are_hours_spent(quotas, rules, q, c):
            return q
        q = tree.parent[q]
    return -1


@inner
def held_against(tree: Tree, work: Work, promise_due: Flags, w: int) -> int:
    """The queue inside whose share ``w`` starts before anybody borrows: its own, or for throughput, and for
    who is due under a promise, that which gives out by merit.
    """
    q, is_due = work.queue[w], work.phase[w] == PENDING and promise_due[w]
    return int(q if tree.sharing.rule[q] == codes.PROMISE and not is_due else sharer(tree, q))


@inner
def _past_half(tree: Tree, queues: Queues, division: Division, q: int, c: int, gpus: int) -> int:
    """The lowest queue from ``q`` up that would not end closer to its share, 0 if all do."""
    usage, fair = queues.usage.gpus, division.fair
    while q > 0 and gpus < 2.0 * (fair[c, q] - usage[c, q]) - EPS:
        q = tree.parent[q]
    return q


@inner
def _past_limit(
    tree: Tree, quotas: Quotas, former: Quotas, rules: Rules, queues: Queues, q: int, c: int, gpus: int,
    claims: bool,
) -> tuple[int, bool]:  # fmt: skip
    """The lowest queue past its limit, and whether a limit is full as long as leaving work holds its GPUs: it
    holds at every moment.
    """
    usage, limit, late = queues.usage, -1, False
    while q > 0:
        cap, would = quotas.cap[c, q], usage.gpus[c, q] + gpus
        late = late or would + usage.leaving[c, q] > cap
        if claims and rules.now < quotas.grace[c, q]:
            cap = max(cap, former.cap[c, q])
        if limit < 0 and would > cap:
            limit = q
        q = tree.parent[q]
    return limit, late


@inner
def _past_nominal(
    tree: Tree, quotas: Quotas, former: Quotas, rules: Rules, queues: Queues, division: Division, q: int,
    c: int, gpus: int, claims: bool,
) -> int:  # fmt: skip
    """The lowest queue past its nominal with work that cannot be preempted, -1 if none."""
    while q > 0:
        most = _most_fixed(quotas, division, queues, c, q)
        if claims:
            graced = rules.now < quotas.grace[c, q]
            most = float(max(quotas.nominal[c, q], former.nominal[c, q] if graced else 0))
        if queues.usage.held_fixed[c, q] + gpus > most + EPS:
            return int(q)
        q = tree.parent[q]
    return -1


@inner
def _most_fixed(quotas: Quotas, division: Division, queues: Queues, c: int, q: int) -> float:
    """What ``q`` may hold that cannot be called back: nominal, and no more than its share (law 5). A
    guarantee that is oversubscribed is exact and a gang is whole, so the one that passes it may start.
    """
    nominal, fair = float(quotas.nominal[c, q]), division.fair[c, q]
    rounded_up = division.short[c, q] and queues.usage.held_fixed[c, q] < fair - EPS
    return nominal if rounded_up else min(nominal, fair)


@inner
def past_limits_beside(
    tree: Tree, work: Work, queues: Queues, users: Users, w: int, gpus: int, how: int
) -> tuple[int, int]:
    """The lowest queue that runs as many workloads as it may, and the lowest in which its user would run, or
    hold, too much. Of what ASKS the leaf's own limit counts: which of its siblings goes first is not known
    yet.
    """
    usage, demand, asks, starts = queues.usage, queues.demand, how == ASKS, how >= STARTS
    q, pair, full, user = work.queue[w], work.user[w], -1, -1
    while q > 0:
        running, by_user, has = usage.running[q], usage.user_running[pair], usage.user_gpus[pair]
        if asks:
            running, by_user = running + demand.queued[q], by_user + demand.user_queued[pair]
            has += demand.user_asks[pair]
        counts = starts and (not asks or q == work.queue[w])
        if full < 0 and counts and running >= tree.most_running[q]:
            full = q
        many = starts and by_user >= tree.most_per_user[q]
        if user < 0 and (many or has + gpus > tree.most_gpus_per_user[q]):
            user = q
        q, pair = tree.parent[q], users.above[pair]
    return full, user
