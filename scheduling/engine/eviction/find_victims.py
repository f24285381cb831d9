"""Which work must leave so that one workload can start.

Limits come first, then room, where it costs least. Then needless victims are put back, and the fairness test
is repeated on the final set.
"""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.exchange import exchange
from scheduling.engine.eviction.free_domain import free_domain
from scheduling.engine.eviction.free_seats import give_some
from scheduling.engine.eviction.lower_first import bar_from, takes_lower, with_lower_beside
from scheduling.engine.eviction.minimal_set import (
    do_without,
    first_unfit,
    is_still_fair,
    is_within_cap,
    lacks_quota,
    put_needless_back,
)
from scheduling.engine.eviction.nearby import mark_nodes
from scheduling.engine.eviction.rules import VictimRequest, allowed, may_give, note_owed
from scheduling.engine.eviction.victim_order import order_below, order_leaf
from scheduling.engine.state.session import Session
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.statement import begin, how_many, let_go, undo_all, unseat

FOUND = -1
MOST_SETS = 8
"""Sets that one search chooses: where a test at the end fails, the next does without the victim that fails
it.
"""


@inner
def find_victims(world: Session, request: VictimRequest) -> bool:
    """Choose victims. On success they stand in ``world.candidates``, released, and the workload's least
    members have claimed their seats; on failure everything is as before.

    None leaves over whom lower priority of its own leaf does as well, wherever that sits: it would take the
    room of that one in the next plan.
    """
    mark_nodes(world, request)
    note_owed(world, request)
    found, again = _find_set(world, request), MOST_SETS
    while found and again > 0:
        too_high = with_lower_beside(world, request)
        if too_high < 0:
            break
        barred = world.candidates.barred.copy()
        give_up(world, request)
        bar_from(world.work, world.candidates, world.ranks, too_high)
        again -= 1
        if _find_set(world, request):
            if takes_lower(world.work, world.candidates, world.ranks, too_high):
                continue
            give_up(world, request)
        _bar(world.candidates, barred)
        found, again = _find_set(world, request), 0
    return bool(found)


@inner
def _bar(candidates: Candidates, barred: Ints) -> None:
    """In a loop: what assigns whole slices compiles with texts for shapes that do not match."""
    for v in range(barred.size):
        candidates.barred[v] = barred[v]


@inner
def _find_set(world: Session, request: VictimRequest) -> bool:
    for _ in range(MOST_SETS):
        sat = _choose_set(world, request)
        if sat == FOUND:
            exchange(world, request)
            return True
        unfit = first_unfit(world, request) if sat == world.work.least[request.w] else -1
        if unfit >= 0:
            world.candidates.barred[unfit] = world.candidates.bounds.search_number[0]
        unseat(world.work, world.room, world.seats, request.w, sat)
        undo_all(world)
        if unfit < 0:
            return False
    return False


@inner
def _choose_set(world: Session, request: VictimRequest) -> int:
    """FOUND, or how many members sit: all of them where what was chosen fails the tests at the end."""
    begin(world.queues, world.candidates)
    sat = free_domain(world, request) if _free_quota(world, request) else 0
    if sat < world.work.least[request.w]:
        return sat
    put_needless_back(world, request)
    if not is_within_cap(world, request):
        do_without(world, request, True)
    if how_many(world.candidates) > 0 and is_within_cap(world, request):
        if is_still_fair(world, request):
            return FOUND
        do_without(world, request, False)
        if is_still_fair(world, request):
            return FOUND
    return sat


@inner
def give_up(world: Session, request: VictimRequest) -> None:
    """Undo a search that succeeded."""
    unseat(world.work, world.room, world.seats, request.w, world.work.least[request.w])
    undo_all(world)


@inner
def _free_quota(world: Session, request: VictimRequest) -> bool:
    """Make room under the limits above the workload, lowest first; False if victims cannot."""
    q = world.work.queue[request.w]
    while q > 0:
        if lacks_quota(world, request, q):
            among, first, last = _candidates_in(world, request, q)
            _shrink_in(world, request, q, among[first:last])
            _evict_in(world, request, q, among[first:last])
        if lacks_quota(world, request, q):
            return False
        q = world.tree.parent[q]
    return True


@inner
def _evict_in(world: Session, request: VictimRequest, q: int, among: Ints) -> None:
    """Victims ``among`` those of ``q`` and below go until it does not lack quota."""
    for v in among:
        if not lacks_quota(world, request, q):
            return
        if not world.candidates.log.leaves[v] and allowed(world, request, v):
            let_go(world, v)


@inner
def _shrink_in(world: Session, request: VictimRequest, q: int, among: Ints) -> None:
    """Elastic gangs ``among`` those of ``q`` and below give up members until it does not lack quota."""
    for v in among:
        h = world.holds.head[v]
        while h >= 0 and lacks_quota(world, request, q) and may_give(world, request, v):
            if not give_some(world, v, h):
                h = world.holds.next[h]


@inner
def _candidates_in(world: Session, request: VictimRequest, q: int) -> tuple[Ints, int, int]:
    """Where to look for victims of ``q`` and below, in order."""
    tree, candidates = world.tree, world.candidates
    if tree.kid_start[q] == tree.kid_start[q + 1]:
        order_leaf(world.work, candidates, q)
        return candidates.slot, candidates.leaf_begin[q], candidates.leaf_begin[q + 1]
    return (
        candidates.order.below_slot,
        0,
        order_below(world, request.c, q, world.work.queue[request.w]),
    )
