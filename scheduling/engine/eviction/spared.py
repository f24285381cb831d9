"""Victims that nobody needs any more.

Those that the whole plan can do without: what somebody who was served later made needless stays.

A search puts back the victims that it does not need itself. Another one may free more than it takes, and
then whoever left for the first could start again in the next cycle on what is left.
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.candidates import drop_weight
from scheduling.engine.eviction.minimal_set import seats_hold
from scheduling.engine.quota.standing import INSIDE, STANDS, standing
from scheduling.engine.reasons.figures import PROMISE
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import gpus_of
from scheduling.engine.state.session import Session
from scheduling.engine.state.victims import Candidates
from scheduling.engine.statement.changed import RETURN, changed
from scheduling.engine.statement.lines import take_back
from scheduling.engine.statement.operations import note_coming
from scheduling.engine.statement.statement import release, restore


@inner
def spare_the_needless(world: Session, since: int) -> None:
    """Whoever was evicted for others from decision ``since`` on stays where all that is promised holds beside
    it, the last first. Limits on workloads and users are left alone: which work is tried next depends on
    them.
    """
    out = world.out
    if world.queues.limits.any or _served(out, world.candidates, since) < 2:
        return
    k = out.size[0] - 1
    while k >= since:
        v = out.order[k]
        if _left_for_others(out, world.candidates, v) and _can_stay(world, v):
            _stay(world, v)
        k -= 1


@inner
def _served(out: Decisions, candidates: Candidates, since: int) -> int:
    """For how many others left."""
    before, found = -1, 0
    for k in range(since, out.size[0]):
        v = out.order[k]
        if _left_for_others(out, candidates, v) and out.rival[v] != before:
            before = out.rival[v]
            found += 1
    return found


@inner
def _left_for_others(out: Decisions, candidates: Candidates, v: int) -> bool:
    evicted = out.action[v] == codes.EVICT and out.rival[v] >= 0
    return bool(evicted and candidates.log.members_given[v] == 0 and candidates.log.leaves[v])


@inner
def _can_stay(world: Session, v: int) -> bool:
    """With ``v`` back no seat is promised twice, and its queues are inside their shares and limits; or ``v``
    is gone as before.
    """
    restore(world, v)
    stands = standing(world, v, world.work.gpu_class[v], 0, STANDS)
    if stands.says == INSIDE and seats_hold(world.holds, world.room, v):
        return True
    release(world, v)
    return False


@inner
def _stay(world: Session, v: int) -> None:
    """Nothing is decided on ``v``, which has its room back; it may be taken again."""
    candidates, work, out, rival = world.candidates, world.work, world.out, world.out.rival[v]
    note_coming(world.tree, work, world.room, world.queues, v, -gpus_of(work, v))
    if out.action[rival] == codes.RESERVE:
        out.figures[rival, PROMISE.victims] -= 1
    take_back(out, v)
    out.lost[v] = 0.0
    candidates.log.leaves[v] = False
    drop_weight(work, world.ranks, world.rules, world.tree, candidates, v, -1)
    changed(candidates, world.shapes, RETURN, work.gpu_class[v], work.queue[v])


@inner
def keep_their_seats(world: Session) -> None:
    """Where a claim has just lapsed, who still leaves for it keeps its own seats, but for those that somebody
    else claims by now.
    """
    pending = world.ordering.pending
    for k in range(pending.size[0] if pending.promised > 0 else 0):
        if world.out.lapsed[pending.slot[k]] >= 0:
            _spare_victims_of(world, pending.slot[k])


@inner
def _spare_victims_of(world: Session, w: int) -> None:
    work, running = world.work, world.ordering.running
    for k in range(running.size[0]):
        v = running.slot[k]
        if not work.leaving[v] or work.part_of[v] >= 0 or work.evicted_for[v] != work.tie[w]:
            continue
        restore(world, v)
        if seats_hold(world.holds, world.room, v):
            note_coming(world.tree, work, world.room, world.queues, v, -gpus_of(work, v))
        else:
            release(world, v)
