"""Entitlement over loans of this very cycle.

Work that starts above the share of its queue before a gang passes its own is no candidate until the next
cycle, whose plan may take it back for that gang, if lower priority leaves beside (law 4). Where the gang gets
inside its share without such borrowers, those whose seats it takes step back and are asked again.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.trial import DONE, passes_nominal, try_class
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.bounds import began_to_its_cost, could_end_inside
from scheduling.engine.eviction.candidates import ensure_candidates
from scheduling.engine.eviction.precedence import (
    OTHERS,
    all_start_again,
    all_step_back,
    ask_again,
    begun_below,
    begun_in,
    fails_again,
    free_at_most,
    has_its_seats,
    note_in_vain,
    preempting,
)
from scheduling.engine.eviction.rules import OWN_TOO
from scheduling.engine.eviction.search import MADE, Ask, find_room
from scheduling.engine.quota.fair_share import common_ancestor
from scheduling.engine.quota.standing import INSIDE, ON_LOAN, STANDS, past_share, standing
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Tree, Work, need_of
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS
from scheduling.engine.statement.lines import EVERY, HOLDING, ROOM, changed, note_bound
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
    request = preempting(world.work, w, c)
    own, more = begun_below(world, w, c, False)
    if not could_end_inside(world, request, more):
        return False
    who, gpus = _borrowers(world, w, c)
    if gpus == 0:
        return False
    if could_end_inside(world, request, 0) and _starts_before(world, w, c, who, gpus):
        return True
    if more > 0 and _starts_before(world, w, c, np.concatenate((who, own)), gpus + more):
        return True
    note_in_vain(world.work, world.queues, world.shapes, w, c, OTHERS)
    return False


@inner
def _starts_before(world: Session, w: int, c: int, who: Ints, gpus: int) -> bool:
    """``w`` starts, or makes room, where ``who`` of ``gpus`` have stepped back; else they start again."""
    work, candidates = world.work, world.candidates
    if free_at_most(world, w, c) + gpus < need_of(work, w):
        return False
    rated = candidates.bounds.rated[0]
    world.queues.round.trials += 1
    all_step_back(world, who)
    starts, yielding = _gets_inside(world, w, c, _meet(world.tree, work, w, who)), who[:0]
    if starts:
        search_afresh(candidates)
        changed(candidates, world.shapes, ROOM, c, EVERY)
        yielding = _take_seats_again(world, w, who)
        ask_again(world, w, c, yielding)
    else:
        all_start_again(world)
    if candidates.bounds.rated[0] < rated:  # Nodes were rated while their queues held less.
        for v in who:
            changed(candidates, world.shapes, HOLDING, c, work.queue[v])
    for v in yielding:
        try_class(world, v, c, 0)
    return starts


@inner
def _take_seats_again(world: Session, w: int, who: Ints) -> Ints:
    """Those whose seats ``w`` has not taken start as before, the earliest first; returns the
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


@inner
def _may_stay(world: Session, w: int, v: int) -> bool:
    """With ``v``, which has taken its seats, no limit is passed and no node overfull; inside the share if it
    is of the queue of ``w``.
    """
    says = standing(world, v, world.out.gpu_class[v], 0, STANDS).says
    most = INSIDE if world.work.queue[v] == world.work.queue[w] else ON_LOAN
    return says <= most and has_its_seats(world.room, world.out, v)


@inner
def _may_go_first(world: Session, w: int, c: int) -> bool:
    rounds = world.queues.round
    if rounds.starts == 0 or rounds.left == 0:
        return False
    if passes_nominal(world, w, c):
        return False
    ensure_candidates(world)
    if began_to_its_cost(world, w, c) == 0:
        return False
    begun = begun_in(world.queues, world.work.queue[w], c)
    if not could_end_inside(world, preempting(world.work, w, c), begun):
        return False
    if fails_again(world, w, c, OTHERS):
        return False
    if rounds.trials == MOST_TRIALS:
        note_bound(world.out, w, MOST_TRIALS)
    return rounds.trials < MOST_TRIALS


@inner
def _borrowers(world: Session, w: int, c: int) -> tuple[Ints, int]:
    """Work that starts on class ``c`` in queues above their shares, up to where ``w`` is as well, the last
    first, and their milli-GPU; not those who were promised their GPUs or for whom others left. A workload
    that steps back again does so for somebody inside its share, so that ends as reclaim does.
    """
    out, work, started = world.out, world.work, began_to_its_cost(world, w, c)
    who, size, gpus = np.empty(MOST_BORROWERS, np.int64), 0, 0
    queues, division, own = world.queues, world.division, work.queue[w]
    left = _begun_above(queues, division, own, c)
    for k in range(started - 1, -1, -1):
        v = out.starts.slot[k]
        if size == MOST_BORROWERS or left <= 0:
            break
        if out.action[v] != codes.ADMIT or out.gpu_class[v] != c:
            continue
        if not _holds_too_much(queues, division, work.queue[v], own, c):
            continue
        left -= 0 if out.starts.withdrawn[v] else out.members[v] * work.need[GPUS, v]
        if out.starts.served[v] or work.claims[v]:
            continue
        # Work that stepped back and started again stands in ``begun`` twice.
        if out.starts.withdrawn[v] and (who[:size] == v).any():
            continue
        if world.ranks.preemptible[work.priority[v]] and _is_above(
            world.tree, work, world.queues, world.division, world.out, v, w
        ):
            who[size] = v
            size += 1
            gpus += out.members[v] * work.need[GPUS, v]
    return who[:size], gpus


@inner
def _begun_above(queues: Queues, division: Division, own: int, c: int) -> int:
    """Milli-GPU of class ``c`` that have started in leaves above their shares, ``own`` aside: where all of
    them have been seen, nobody else is to be found.
    """
    gpus = 0
    for q in range(queues.starts.started.shape[1]):
        if queues.starts.started[c, q] > 0 and _holds_too_much(queues, division, q, own, c):
            gpus += queues.starts.started[c, q]
    return gpus


@inner
def _holds_too_much(queues: Queues, division: Division, q: int, own: int, c: int) -> bool:
    return bool(q != own and past_share(queues, division, q, c, 0))


@inner
def _is_above(
    tree: Tree, work: Work, queues: Queues, division: Division, out: Decisions, v: int, w: int
) -> bool:
    """Every queue of ``v``, which starts, below the first that ``w`` is in as well is above its share."""
    q, c = work.queue[v], out.gpu_class[v]
    meet = common_ancestor(tree, q, work.queue[w])
    if q == meet:
        return False
    while q != meet:
        if not past_share(queues, division, q, c, 0):
            return False
        q = tree.parent[q]
    return True


@inner
def _meet(tree: Tree, work: Work, w: int, who: Ints) -> int:
    """The lowest queue that ``w`` and all of ``who`` are in."""
    meet = work.queue[w]
    for v in who:
        meet = common_ancestor(tree, work.queue[v], meet)
    return int(meet)


@inner
def _gets_inside(world: Session, w: int, c: int, meet: int) -> bool:
    """``w`` starts inside its share, or gets there by making room below ``meet``."""
    q, refused = world.work.queue[w], world.candidates.failed.slot
    failed, refused[c, q] = refused[c, q], -1
    if try_class(world, w, c, 0) == DONE:
        return True
    if find_room(world, Ask(w, c, OWN_TOO, meet)) == MADE:
        return True
    refused[c, q] = failed
    return False
