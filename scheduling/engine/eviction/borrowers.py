"""Entitlement over loans of this very cycle.

Who starts above the share of its queue before a gang passes its own is no candidates until the next cycle,
whose plan may take it back for that gang, if lower priority leaves beside (law 4). Where the gang gets
inside its share without such borrowers, those whose seats it takes step back and are asked again.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.allocate import need_of, passes_nominal
from scheduling.engine.admission.trial import DONE, try_class
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.bounds import began_to_its_cost, left_for, may_be_entitled
from scheduling.engine.eviction.precedence import (
    OTHERS,
    all_start_again,
    all_step_back,
    ask_again,
    begun_below,
    fails_again,
    free_at_most,
    has_its_seats,
    note_in_vain,
    preempting,
)
from scheduling.engine.eviction.protection import patient_until
from scheduling.engine.eviction.rooming import MOST_STRETCHED, ensure_candidates, make_room_below
from scheduling.engine.eviction.rules import RECLAIM, VictimRequest
from scheduling.engine.quota.fair_share import (
    common_ancestor,
    levels_over,
    over_limit,
    rounded_reach,
    takes_kept,
)
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS, GPUS
from scheduling.engine.statement.changed import EVERY, HOLDING, ROOM, changed
from scheduling.engine.statement.lines import note_bound
from scheduling.engine.statement.statement import redo_one, search_afresh, undo_one

MOST_TRIALS, MOST_BORROWERS = 1000, 64
"""In one cycle, and of those who started last in one trial: these bound a cycle's time."""


@inner
def goes_before_borrowers(world: Session, w: int, c: int) -> bool:
    """Whether ``w`` starts, or makes room, on class ``c`` once those who borrow step back for it, if need be
    with lower priority of its queue that has just started.
    """
    if not _may_go_first(world, w, c):
        return False
    request = preempting(world, w, c)
    own, more = begun_below(world, w, c, False)
    if not _may_be_owed(world, request, more):
        return False
    inside = may_be_entitled(world, request, more)
    who, gpus = _borrowers(world, w, c, inside)
    if gpus == 0:
        return False
    if _may_be_owed(world, request, 0) and _starts_before(world, w, c, who, gpus):
        return True
    if more > 0 and _starts_before(world, w, c, np.concatenate((who, own)), gpus + more):
        return True
    note_in_vain(world, w, c, OTHERS)
    world.queues.round.stretched += not inside
    return False


@inner
def _may_be_owed(world: Session, request: VictimRequest, begun: int) -> bool:
    """Whether its leaf would be inside its share with the workload, without lower priority and ``begun``
    milli-GPU of those who start; or a part of it at most would pass, and it has waited long enough for a
    reclaim on that ground, of which a cycle tries no more in vain than it searches further than to shares.
    """
    if may_be_entitled(world, request, begun):
        return True
    queues, c = world.queues, request.c
    if queues.round.stretched >= MOST_STRETCHED or queues.redivision.grace_until_s[c] > 0.0:
        return False
    if world.rules.now < patient_until(world, request.w, RECLAIM, False):
        return False
    return bool(request.need < 2.0 * left_for(world, request, begun) - EPS)


@inner
def _starts_before(world: Session, w: int, c: int, who: Ints, gpus: int) -> bool:
    """``w`` starts, or makes room, where ``who`` of ``gpus`` have stepped back; else they start again."""
    if free_at_most(world, w, c) + gpus < need_of(world, w):
        return False
    rated = world.candidates.bounds.rated[0]
    world.queues.round.trials += 1
    all_step_back(world, who)
    starts, yielding = _gets_inside(world, w, c, _meet(world, w, who)), who[:0]
    if starts:
        search_afresh(world)
        changed(world, ROOM, c, EVERY)
        yielding = _take_seats_again(world, w, who)
        ask_again(world, w, c, yielding)
    else:
        all_start_again(world)
    if world.candidates.bounds.rated[0] < rated:  # Nodes were rated while their queues held less.
        for v in who:
            changed(world, HOLDING, c, world.work.queue[v])
    for v in yielding:
        try_class(world, v, c, 0)
    return starts


@once
def _take_seats_again(world: Session, w: int, who: Ints) -> Ints:
    """Those whose seats ``w`` has not taken start as before, who started first goes first; returns the
    others. In the log ``who`` stand first, in this order.
    """
    yielding, size = np.empty(who.size, np.int64), 0
    for k in range(who.size - 1, -1, -1):
        undo_one(world, k)
        if not _may_stay(world, w, who[k]):
            redo_one(world, k)
            yielding[size] = who[k]
            size += 1
    return yielding[:size]


@once
def _may_stay(world: Session, w: int, v: int) -> bool:
    """With ``v``, which has taken its seats, no limit is passed and no node overfull; inside the share if it
    is of the queue of ``w``.
    """
    q, c = world.work.queue[v], world.out.gpu_class[v]
    if over_limit(world, q, c, 0) >= 0 or takes_kept(world, q, c, 0) >= 0:
        return False
    own = q == world.work.queue[w]
    if own and levels_over(world.tree, world.queues, world.division, q, c, 0) > 0:
        return False
    return has_its_seats(world, v)


@once
def _may_go_first(world: Session, w: int, c: int) -> bool:
    rounds = world.queues.round
    if rounds.starts == 0 or rounds.left == 0:
        return False
    if passes_nominal(world, w, c):
        return False
    ensure_candidates(world)
    if began_to_its_cost(world, w, c) == 0:
        return False
    begun = world.queues.starts.started[c, world.work.queue[w]]
    if not _may_be_owed(world, preempting(world, w, c), begun):
        return False
    if fails_again(world, w, c, OTHERS):
        return False
    if rounds.trials == MOST_TRIALS:
        note_bound(world.out, w, MOST_TRIALS)
    return rounds.trials < MOST_TRIALS


@once
def _borrowers(world: Session, w: int, c: int, inside: bool) -> tuple[Ints, int]:
    """Who starts on class ``c`` in queues above their shares, up to where ``w`` is as well, the last first,
    and their milli-GPU; not those for whom others left. Who steps back
    again does so for somebody inside its share, so that ends as reclaim does. For who is not ``inside``, and
    of those to whom an earlier plan promised it, only who lies mostly above.
    """
    out, work, started = world.out, world.work, began_to_its_cost(world, w, c)
    who, size, gpus = np.empty(MOST_BORROWERS, np.int64), 0, 0
    for k in range(started - 1, -1, -1):
        v = out.starts.slot[k]
        if size == MOST_BORROWERS:
            break
        if out.action[v] != codes.ADMIT or out.gpu_class[v] != c or out.starts.served[v]:
            continue
        if out.starts.withdrawn[v] and _is_among(v, who[:size]):
            continue
        if (work.claims[v] or not inside) and not _may_do_with_less(world, v):
            continue
        if world.ranks.preemptible[work.priority[v]] and _is_above(world, v, w):
            who[size] = v
            size += 1
            gpus += out.members[v] * work.need[GPUS, v]
    return who[:size], gpus


@once
def _is_among(v: int, who: Ints) -> bool:
    """Who stepped back and started again stands in ``begun`` twice."""
    for other in who:
        if other == v:
            return True
    return False


@once
def _is_above(world: Session, v: int, w: int) -> bool:
    """Every queue of ``v``, which starts, below the first that ``w`` is in as well is above its share."""
    q, c = world.work.queue[v], world.out.gpu_class[v]
    meet = common_ancestor(world.tree, q, world.work.queue[w])
    if q == meet:
        return False
    while q != meet:
        if world.queues.usage.held[c, q] <= world.division.fair[c, q] + EPS:
            return False
        q = world.tree.parent[q]
    return True


@once
def _may_do_with_less(world: Session, v: int) -> bool:
    """Whether ``v`` may start with fewer members, or its queue is closer to its share without it."""
    if world.work.claims[v] and world.out.members[v] > world.work.least[v]:
        return True
    q, c = world.work.queue[v], world.out.gpu_class[v]
    gpus = world.out.members[v] * world.work.need[GPUS, v]
    return bool(gpus < 2.0 * (world.queues.usage.held[c, q] - world.division.fair[c, q]) - EPS)


@once
def _meet(world: Session, w: int, who: Ints) -> int:
    """The lowest queue that ``w`` and all of ``who`` are in."""
    meet = world.work.queue[w]
    for v in who:
        meet = common_ancestor(world.tree, world.work.queue[v], meet)
    return int(meet)


@once
def _gets_inside(world: Session, w: int, c: int, meet: int) -> bool:
    """``w`` starts inside its share, or gets there by making room below ``meet``."""
    q, refused = world.work.queue[w], world.candidates.failed.slot
    failed, refused[c, q] = refused[c, q], -1
    if try_class(world, w, c, 0) == DONE or make_room_below(world, w, c, meet):
        return True
    if _comes_closer(world, w, c, meet) and try_class(world, w, c, world.tree.depth.max()) == DONE:
        return True
    refused[c, q] = failed
    return False


@once
def _comes_closer(world: Session, w: int, c: int, meet: int) -> bool:
    """Whether every queue of ``w`` below ``meet`` comes closer to its share with all of its members, and it
    has waited long enough for a reclaim on that ground.
    """
    most = world.work.most[w] * world.work.need[GPUS, w]
    top = rounded_reach(world.tree, world.queues, world.division, world.work.queue[w], c, most)
    if (
        world.tree.depth[top] > world.tree.depth[meet]
        or world.queues.redivision.grace_until_s[c] > 0.0
    ):
        return False
    return bool(world.rules.now >= patient_until(world, w, RECLAIM, False))
