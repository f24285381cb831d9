"""What is known of a search before it starts: what could be gained at most, whose failed already, and what
stood in the way of those: in bits, one for each rule, those of searches up to fair shares first.
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.candidates import drop_weight
from scheduling.engine.eviction.minimal_set import ends_inside
from scheduling.engine.eviction.rules import (
    BUDGET,
    CAP,
    DELAY,
    PREEMPT,
    PROTECTED,
    RECLAIM,
    VictimRequest,
    asking,
)
from scheduling.engine.order.by_merit import by_merit
from scheduling.engine.quota.fair_share import LENT, PLAIN, beyond_nominal, kept_by, left_by
from scheduling.engine.quota.limits import may_evict
from scheduling.engine.quota.standing import past_share, spent_hours
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Ranks, Rules, Work, need_of
from scheduling.engine.state.order import Shapes
from scheduling.engine.state.queues import Queues, Search
from scheduling.engine.state.roles import has_roles, needs_segments
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, EPS, GPUS
from scheduling.engine.state.victims import BOUND, LOOSE, Candidates, FailedSearches

MOST_BARS = CAP + 1


@inner
def is_promising(world: Session, request: VictimRequest) -> bool:
    """Whether what the rules let go, summed by queue, and what is free would be enough.

    An upper bound at the cost of a walk over the queues. What it leaves out because time or a budget
    forbids it is noted in ``search.forbidden``.
    """
    tree, quotas, rules, queues = world.tree, world.quotas, world.rules, world.queues
    if spent_hours(tree, quotas, rules, queues, world.work.queue[request.w], request.c) >= 0:
        return False
    if request.rule == PREEMPT:
        gain = displaceable(world.work, world.ranks, queues, world.candidates, request)
    else:
        gain = _gain_beside(world, request)
    free = world.room.open[request.c] + world.room.coming[request.c]
    return bool(gain > 0 and free + gain >= request.need)


@inner
def displaceable(
    work: Work, ranks: Ranks, queues: Queues, candidates: Candidates, request: VictimRequest
) -> int:
    """Milli-GPU of lower priority in the leaf."""
    q, value = work.queue[request.w], ranks.value
    mine, gain = value[work.priority[request.w]], 0
    for p in range(value.size):
        if value[p] < mine:
            gain += _mass(queues, candidates, request, q, p)
    return gain


@inner
def _gain_beside(world: Session, request: VictimRequest) -> int:
    """Milli-GPU above fair share beside the way from the leaf up to ``request.top``, that included, and
    where both kinds leave of lower priority in the leaf; 0 where these would leave a queue below it short
    of what the workload needs.
    """
    work, queues, candidates = world.work, world.queues, world.candidates
    q, gain = work.queue[request.w], 0
    if request.rule != RECLAIM:
        gain = displaceable(work, world.ranks, queues, candidates, request)
    if not ends_inside(world, request, q, gain):
        return 0
    _sum_up(world, request)
    while q != request.top:
        q, kid = world.tree.parent[q], q
        gain += candidates.by_queue.takeable_below[q] - candidates.by_queue.takeable[kid]
        if not ends_inside(world, request, q, gain):
            return 0
    return gain


@inner
def lent_at_most(world: Session, w: int, c: int) -> int:
    """Milli-GPU of class ``c`` that queues beside the way from the leaf of ``w`` up to the root could lose to
    it of what lies above their shares, were nothing protected.
    """
    return _gain_beside(world, asking(world.work, w, c, RECLAIM, 0, True, PROTECTED))


@inner
def first_of_both(world: Session, request: VictimRequest) -> int:
    """The lowest queue below which both together may take what reclaim below ``request.top`` and preempt
    could not; -1 if there is none.
    """
    work, ranks, queues, candidates = world.work, world.ranks, world.queues, world.candidates
    q, own = work.queue[request.w], displaceable(work, ranks, queues, candidates, request)
    if own == 0:
        return int(world.tree.parent[request.top]) if request.top != q else -1
    if not could_end_inside(world, request, 0):
        return -1
    return int(request.top if request.top != q else world.tree.parent[request.top])


@inner
def could_end_inside(world: Session, request: VictimRequest, begun: int) -> bool:
    """Arithmetic on sums that may come: whether its leaf would end inside its share with the workload, and
    with none of lower priority that ran nor ``begun`` milli-GPU of those who start in this cycle.
    """
    work, ranks, queues, candidates = world.work, world.ranks, world.queues, world.candidates
    q, need = work.queue[request.w], request.need
    less = displaceable(work, ranks, queues, candidates, request) + begun
    return not past_share(queues, world.division, q, request.c, need - less)


@inner
def _sum_up(world: Session, request: VictimRequest) -> None:
    """What each subtree could lose: its work, but no more than its excess and, where a gang may lie
    partly inside the share, one gang beyond; nor more than its budget.
    """
    tree, queues, candidates, c = world.tree, world.queues, world.candidates, request.c
    elastic = world.ordering.running.elastic > 0
    usage, inside = queues.usage.gpus, request.stretch != LENT
    for q in range(tree.parent.size):
        candidates.by_queue.takeable_below[q] = candidates.by_queue.takeable[q] = 0
    for q in range(tree.parent.size - 1, 0, -1):
        # Only what is LENT may be taken from inside a share; most queues are left out here.
        if inside and not past_share(queues, world.division, q, c, 0):
            continue
        above = usage[c, q] - _kept_by(world, request, q)
        if above <= EPS:
            continue
        gain = candidates.by_queue.takeable_below[q]
        if tree.kid_start[q] == tree.kid_start[q + 1]:
            for p in range(world.ranks.value.size):
                gain += _mass(queues, candidates, request, q, p)
        most = int(above) + 1 + (candidates.by_queue.largest_gang[c, q] if request.owed else 0)
        most = min(most, beyond_nominal(world.quotas, world.division, queues, c, q))
        gain = min(gain, most)
        if request.overlook != BUDGET and queues.usage.eviction_budget[q] < gain:
            queues.search.forbidden[BUDGET] = 1
            # What elastic gangs can do without is not evicted, and no budget speaks for it.
            gain = gain if elastic else max(0, queues.usage.eviction_budget[q])
        candidates.by_queue.takeable[q] = gain
        candidates.by_queue.takeable_below[tree.parent[q]] += gain


@inner
def _kept_by(world: Session, request: VictimRequest, q: int) -> float:
    """What a reclaim leaves to queue ``q``; where only a grace protects it, that is noted."""
    graced, division = request.overlook != PROTECTED, world.division
    keeps = kept_by(world, request.c, q, request.stretch, graced)
    above = past_share(world.queues, division, q, request.c, 0)
    if above and keeps > left_by(world.quotas, division, request.c, q, request.stretch):
        world.queues.search.forbidden[PROTECTED] = 1
    return keeps


@inner
def _mass(queues: Queues, candidates: Candidates, request: VictimRequest, q: int, p: int) -> int:
    """What leaf ``q`` could lose of priority class ``p``."""
    mass, c = candidates.by_queue.evictable, request.c
    safe = mass[BOUND, c, q, p]
    if request.overlook == PROTECTED:
        return mass[LOOSE, c, q, p] + safe
    if safe > 0:
        queues.search.forbidden[PROTECTED] = 1
    return mass[LOOSE, c, q, p]


@inner
def fails_like_another(world: Session, w: int, c: int) -> bool:
    """Whether a search failed, and nobody was evicted since, for one that asked for no more than ``w``
    does. What stood in its way stands in that of ``w``.
    """
    out, before = world.out, world.candidates.failed.slot[c, world.work.queue[w]]
    if before < 0 or out.action[before] not in (codes.WAIT, codes.RESERVE):
        return False
    if not _speaks_for(world.work, world.ranks, world.rules, out, before, w):
        return False
    return _barred_alike(world.work, out, before, w)


@inner
def _barred_alike(work: Work, out: Decisions, before: int, w: int) -> bool:
    """Whether what stood in the way of ``before`` stands in that of ``w``: not where ``before`` had to wait
    itself, and ``w`` has for longer. Then that is noted.
    """
    if is_delayed(out.searches.barred_by[before]) and work.submitted[w] < work.submitted[before]:
        return False
    out.searches.barred_by[w] |= out.searches.barred_by[before]
    return True


@inner
def note_failure(work: Work, queues: Queues, candidates: Candidates, w: int, c: int) -> None:
    """The search for ``w`` on class ``c`` failed."""
    q = work.queue[w]
    candidates.failed.slot[c, q], candidates.failed.starts_then[c, q] = (w, queues.round.starts)


@inner
def searched_in_vain(world: Session, w: int, c: int) -> bool:
    """Whether a search of its queue failed since anything changed, for one that asked for no more than ``w``
    does and is not decided on yet: a later pass asks both again.
    """
    failed, q = world.candidates.failed, world.work.queue[w]
    if failed.in_vain_at[c, q] != world.shapes.refusals.change or by_merit(world.tree, q):
        return False
    before = failed.in_vain[c, q]
    if not asks_for_more(world.work, world.ranks, world.rules, w, before):
        return False
    return _barred_alike(world.work, world.out, before, w)


@inner
def note_search_in_vain(failed: FailedSearches, shapes: Shapes, w: int, c: int, q: int) -> None:
    """Nobody would leave for ``w`` of queue ``q`` on class ``c``."""
    failed.in_vain[c, q], failed.in_vain_at[c, q] = w, shapes.refusals.change


@inner
def began_to_its_cost(world: Session, w: int, c: int) -> int:
    """How many of those who have started in this cycle, the first so many, may stand in the way of ``w``: who
    started after the like of it searched in vain does not.
    """
    work, ranks, rules, out = world.work, world.ranks, world.rules, world.out
    q, begun = work.queue[w], world.queues.round.starts
    before = world.candidates.failed.slot[c, q]
    if before < 0 or out.action[before] == codes.ADMIT:
        return begun
    if not _speaks_for(work, ranks, rules, out, before, w):
        return begun
    return min(begun, world.candidates.failed.starts_then[c, q])


@inner
def _speaks_for(
    work: Work, ranks: Ranks, rules: Rules, out: Decisions, before: int, w: int
) -> bool:
    """Whether ``w`` searches in vain where ``before`` did: not if what was coming free made victims needless
    for that one, and it was promised it since.
    """
    promised = out.reason[before] == codes.AWAITS_VICTIMS
    return not promised and asks_for_more(work, ranks, rules, w, before)


@inner
def asks_for_more(work: Work, ranks: Ranks, rules: Rules, w: int, than: int) -> bool:
    """``w`` could not start by any eviction that does not let ``than`` start as well, or is its equal.

    A larger workload may evict more where the eviction cap counts what is asked for.
    """
    value = ranks.value
    most = may_evict(work, rules, w, need_of(work, w))
    if most != may_evict(work, rules, than, need_of(work, than)):
        return False
    for r in range(work.need.shape[0]):
        if work.need[r, w] < work.need[r, than]:
            return False
    if work.required[than] != ANYWHERE and work.required[w] != work.required[than]:
        return False
    apart = work.where[than] >= 0 and work.where[w] != work.where[than]
    if apart or (needs_segments(work, than) and work.segment[w] != work.segment[than]):
        return False
    mixed = has_roles(work, w) or has_roles(work, than)
    if mixed and work.beside[w] != work.beside[than]:
        return False
    lower = value[work.priority[w]] <= value[work.priority[than]]
    return bool(lower and work.least[w] >= work.least[than])


@inner
def note_loss(world: Session, k: int) -> None:
    """What the ``k``-th of the chosen takes away no later search of this cycle can take again."""
    work, candidates = world.work, world.candidates
    v = candidates.log.slot[k]
    c, q, p = work.gpu_class[v], work.queue[v], work.priority[v]
    if candidates.log.part[k] < 0:
        drop_weight(work, world.ranks, world.rules, world.tree, candidates, v, 1)
    else:
        candidates.by_queue.evictable[LOOSE, c, q, p] -= work.need[GPUS, v]


@inner
def bars(search: Search, stretch: int) -> int:
    """What has stood in the way of searches that go as far as ``stretch``, in bits: those up to fair shares
    first.
    """
    found = 0
    for rule in range(DELAY, MOST_BARS):
        found += search.forbidden[rule] << rule
    return found if stretch == PLAIN else found << MOST_BARS


@inner
def is_delayed(barred_by: int) -> bool:
    """Whether a workload that this barred had to wait itself."""
    return bool((barred_by | barred_by >> MOST_BARS) >> DELAY & 1)


@inner
def recall_bars(search: Search, barred_by: int, stretch: int) -> bool:
    """Note in ``search`` what ``bars`` returned; whether it is anything."""
    found = barred_by if stretch == PLAIN else barred_by >> MOST_BARS
    anything = False
    for rule in range(DELAY, MOST_BARS):
        search.forbidden[rule] = found >> rule & 1
        anything = anything or search.forbidden[rule] == 1
    return anything
