"""Making room by merit: late work, or for throughput work that waits, evicts what is well ahead or far
longer.

Nobody evicts past what the subtree may still evict, and nobody of higher priority leaves.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.trial import passes_nominal, start_or_promise
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Flags
from scheduling.engine.eviction.bounds import note_loss
from scheduling.engine.eviction.candidates import ensure_candidates
from scheduling.engine.eviction.cheapest_set import cheapest_set
from scheduling.engine.eviction.rules import (
    RECLAIM,
    STRICT,
    VictimRequest,
    asking,
    had_risen,
    in_budget,
    protected_until,
)
from scheduling.engine.model import UNLIMITED
from scheduling.engine.order.by_merit import expected_gpu_s, expected_of, lead_of
from scheduling.engine.order.pending import RISEN
from scheduling.engine.placement.place import place
from scheduling.engine.quota.limits import eviction_limit_reached, may_evict
from scheduling.engine.quota.standing import ON_LOAN, STARTS, owes, standing
from scheduling.engine.reasons.figures import PROMISE, YIELD
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Ranks, Tree, Work, core_of, need_of
from scheduling.engine.state.order import RunningSlots
from scheduling.engine.state.roles import has_roles
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import LATER
from scheduling.engine.state.victims import Candidates, MeritSearches
from scheduling.engine.statement.lines import EVERY, ROOM, changed
from scheduling.engine.statement.operations import evict
from scheduling.engine.statement.statement import begin, let_go, undo_all

MOST_SEARCHES = 64
"""In a cycle; this bounds its time."""
PATIENCE_S = 30.0
"""For throughput work that has waited less evicts nobody."""
RETRY_S = 60.0
"""Victims come past a checkpoint, so work that may evict searches again."""


@inner
def clear_searches_by_merit(tree: Tree, merit: MeritSearches) -> None:
    """A cycle begins."""
    merit.asks_again[0], merit.searches[0] = np.inf, 0
    merit.failed_at.fill(-1)
    for q in range(merit.evictions_left.size):
        merit.evictions_left[q] = tree.sharing.evictions_left[q]


@inner
def gives_way(world: Session, w: int, c: int) -> bool:
    """Others leave for ``w`` on class ``c``, by merit."""
    tree, work, merit, need = world.tree, world.work, world.candidates.merit, need_of(world.work, w)
    promise_due, epoch = world.ordering.merit.promise_due, world.shapes.refusals.epoch
    if not _may_search(tree, work, merit, promise_due, w, world.rules.now):
        return False
    if _fails_like_another(merit, epoch, c, need) or passes_nominal(world, w, c):
        return False
    ensure_candidates(world)
    top = tree.sharing.top[work.queue[w]]
    request = asking(work, w, c, RECLAIM, top, False, STRICT)
    merit.searches[0] += 1
    if price_all(world, request) and _choose(world, request):
        return _carry_out(world, request)
    return False


@inner
def _may_search(
    tree: Tree, work: Work, merit: MeritSearches, promise_due: Flags, w: int, now: float
) -> bool:
    """By what it waits for; and whether any search is left. It searches again before long."""
    q = work.queue[w]
    promises = tree.sharing.rule[q] == codes.PROMISE
    if promises and not promise_due[w]:
        return False
    since = work.evicted[w] if promises else max(work.submitted[w], work.evicted[w])
    patient = now >= since + PATIENCE_S
    again = now + RETRY_S if patient else since + PATIENCE_S
    merit.asks_again[0] = min(merit.asks_again[0], again)
    left = merit.evictions_left[tree.sharing.top[q]] > 0.0
    return bool(patient and left and merit.searches[0] < MOST_SEARCHES)


@inner
def _fails_like_another(merit: MeritSearches, epoch: int, c: int, need: int) -> bool:
    """Whether one that asked for no more was refused before: it had more of them to choose from, since the
    due, and who waits patiently, are asked in order of expected work.
    """
    return bool(merit.failed_at[c] == epoch and need >= merit.failed[c])


@inner
def _note_failure(merit: MeritSearches, epoch: int, c: int, need: int) -> None:
    """No GPUs would do for one that may run anywhere, of the only subtree."""
    least = merit.failed[c] if merit.failed_at[c] == epoch else need
    merit.failed[c], merit.failed_at[c] = min(least, need), epoch


@inner
def _choose(world: Session, request: VictimRequest) -> bool:
    """The cheapest victims whose seats and what is free take the workload; they are in the log, and its
    seats taken.
    """
    candidates = world.candidates
    work, w, many = world.work, request.w, cheapest_set(world, request)
    if many == 0:
        anywhere = work.where[w] < 0 and not has_roles(work, w)
        if anywhere and request.top == world.tree.sharing.top[0]:
            epoch = world.shapes.refusals.epoch
            _note_failure(candidates.merit, epoch, request.c, request.need)
        return False
    begin(world.queues, candidates)
    for i in range(many):
        let_go(world, candidates.merit.chosen[i])
    most = may_evict(work, world.rules, w, request.need)
    capped = world.queues.search.evicted[0] > most
    stands = standing(world, w, request.c, request.need, STARTS)
    may = not capped and stands.says <= ON_LOAN
    if may and place(world, w, request.c, work.least[w], LATER) > 0:
        return True
    undo_all(world)
    return False


@inner
def _carry_out(world: Session, request: VictimRequest) -> bool:
    """The chosen leave, the workload keeps the seats it has claimed."""
    candidates, out, gone = world.candidates, world.out, 0
    for k in range(candidates.log.first, candidates.log.size):
        v = candidates.log.slot[k]
        note_loss(world, k)
        evict(world, v, codes.GIVES_WAY)
        _quote(world, request, v)
        gone += 1
    candidates.merit.evictions_left[request.top] -= gone
    changed(candidates, world.shapes, ROOM, request.c, EVERY)
    start_or_promise(world, request.w, request.c, world.work.least[request.w])
    if out.action[request.w] == codes.RESERVE:
        out.figures[request.w, PROMISE.victims] = gone
    return True


@inner
def _quote(world: Session, request: VictimRequest, v: int) -> None:
    out, candidates, work = world.out, world.candidates, world.work
    ahead, most = lead_of(work, v, world.rules.now), float(UNLIMITED)
    out.rival[v], out.blame[v], out.lost[v] = request.w, request.top, candidates.lost_gpu_s[v]
    out.starts.served[request.w], out.rule[v] = True, codes.BY_MERIT
    out.figures[v, YIELD.ahead_s] = min(ahead, most)
    out.figures[v, YIELD.expected_gpu_s] = min(expected_gpu_s(work, v), most)
    out.figures[v, YIELD.other_expected_gpu_s] = min(expected_gpu_s(work, request.w), most)
    out.figures[v, YIELD.requested] = request.need
    promises = world.tree.sharing.rule[work.queue[v]] == codes.PROMISE
    out.figures[v, YIELD.is_ahead] = promises and ahead > AHEAD_S
    candidates.bounds.rated[0] += 1


@inner
def may_make_room(world: Session, w: int, c: int) -> bool:
    """Whether the other ways of making room are open to ``w`` where its subtree gives out by merit: across
    its border, by priority, and for its nominal once it has waited past the bound of its class, or at once
    where nobody plays along.
    """
    tree, quotas, work, queues = world.tree, world.quotas, world.work, world.queues
    q = work.queue[w]
    entitled = world.ordering.pending.rank[w] == RISEN or not tree.sharing.played[q]
    world.candidates.merit.calm[w] = not entitled
    if tree.sharing.top[q] > 0 or _is_above_others(world.ordering.running, world.ranks, work, w):
        return True
    return bool(entitled and owes(tree, quotas, queues, q, -1, c, need_of(work, w)))


@inner
def _is_above_others(running: RunningSlots, ranks: Ranks, work: Work, w: int) -> bool:
    """Whether lower priority runs in its leaf."""
    value, rank, q = ranks.value, work.priority, work.queue[w]
    for k in range(running.queue_begin[q + 1], running.queue_begin[q + 2]):
        v = running.slot[k]
        if rank[v] >= 0 and value[rank[v]] < value[rank[w]]:
            return True
    return False


AHEAD_S, AHEAD_FRESH_S = 7200.0, 300.0
"""Work further ahead of its own quota may leave for late work, as soon after a checkpoint or start."""
TIMES_LONGER, LONGER_FRESH_S = 10.0, 120.0
"""What expects so many times the work may leave, as soon after one."""
PER_EVICTION, PER_LATE = 900.0, 20_000.0
"""GPU-seconds that an eviction is weighed with beside its lost work; one of a workload that is not AHEAD_S
ahead in addition.
"""
SILENT_S = 7200.0
"""Of work without a checkpoint for longer none is to be waited for: it may leave at any time."""


@inner
def price_all(world: Session, request: VictimRequest) -> bool:
    """What each eviction would be weighed with, infinite where it may not be; whether any may."""
    tree, work, candidates, now = world.tree, world.work, world.candidates, world.rules.now
    running, price, any_may = world.ordering.running, candidates.merit.price, False
    for k in range(running.size[0]):
        v = running.slot[k]
        price[v] = np.inf
        if _may_leave(world, request, v):
            price[v] = _price(tree, work, candidates, v, now)
            any_may = True
    return any_may


@inner
def _may_leave(world: Session, request: VictimRequest, v: int) -> bool:
    ranks, rules = world.ranks, world.rules
    tree, work, now = world.tree, world.work, rules.now
    if not _is_below(tree, work, request, v) or not _is_there(work, world.candidates, world.out, v):
        return False
    fresh = work.started[v] >= now or had_risen(work, ranks, v)
    if fresh or eviction_limit_reached(work, rules, v):
        return False
    value, rank = ranks.value, work.priority
    expected = world.ordering.merit.expected[request.w]
    if value[rank[v]] > value[rank[request.w]] or not _is_worth_it(tree, work, v, expected, now):
        return False
    is_over = now >= protected_until(world, request, v)
    return bool(is_over and in_budget(tree, world.queues, work.queue[v], core_of(work, v)))


@inner
def _is_below(tree: Tree, work: Work, request: VictimRequest, v: int) -> bool:
    """It runs on the class, in the subtree of the request."""
    q = work.queue[v]
    if work.gpu_class[v] != request.c or q < 0:
        return False
    return bool(tree.sharing.top[q] == request.top)


@inner
def _is_there(work: Work, candidates: Candidates, out: Decisions, v: int) -> bool:
    """It is a candidate, whole, and nothing is decided on it."""
    if candidates.listed_in[v] != candidates.number[0] or work.leaving[v]:
        return False
    if candidates.log.leaves[v] or candidates.log.members_given[v] != 0:
        return False
    return bool(out.action[v] == codes.UNDECIDED)


@inner
def _is_worth_it(tree: Tree, work: Work, v: int, expected: float, now: float) -> bool:
    """It is well ahead of its own quota, or is far longer than the ``expected`` work of whom it leaves for,
    and little of it is lost.
    """
    lost_s = now - max(work.started[v], work.checkpointed[v])
    silent = lost_s > SILENT_S
    is_longer = TIMES_LONGER * expected < expected_of(tree, work, v) < np.inf
    if is_longer and (lost_s <= LONGER_FRESH_S or silent):
        return True
    promises = tree.sharing.rule[work.queue[v]] == codes.PROMISE
    fresh = lost_s <= AHEAD_FRESH_S or silent
    return bool(promises and fresh and lead_of(work, v, now) > AHEAD_S)


@inner
def _price(tree: Tree, work: Work, candidates: Candidates, v: int, now: float) -> float:
    price = PER_EVICTION + candidates.lost_gpu_s[v]
    promises = tree.sharing.rule[work.queue[v]] == codes.PROMISE
    if promises and lead_of(work, v, now) < AHEAD_S:
        price += PER_LATE
    return float(price)
