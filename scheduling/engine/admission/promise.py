"""Step 2: those to whom an earlier plan promised room that comes free.

They claim the very seats again, all of them, before anybody starts. One starts when its nodes have room
for all who were promised seats there, so which of them is looked at first decides nothing.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.allocate import fills_what_leaves, quota_allows
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import Flags
from scheduling.engine.placement.node_room import ONE, pledge, take_now, take_open, unpledge
from scheduling.engine.placement.place import sit_as_promised
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Work
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS
from scheduling.engine.statement.lines import recall, seat_out
from scheduling.engine.statement.operations import (
    admit,
    note_start,
    note_started,
    promise,
    tell_start,
)
from scheduling.engine.statement.statement import unseat


@inner
def seat_the_promised(world: Session) -> None:
    """Claim, look, stand up again where there is no room yet, decide."""
    out, ordering = world.out, world.ordering
    if ordering.pending.promised == 0:
        return
    item = ordering.pending.slot[: ordering.pending.size[0]]
    ready = np.zeros(out.action.size, np.bool_)
    for w in item:
        out.members[w] = _claim(world, w)
    for w in item:
        ready[w] = out.members[w] > 0 and _has_room_for_all(world, w)
    for w in item:
        if out.members[w] > 0 and not ready[w]:
            _stand(world.room, out, world.work, w, -1)
    for w in item:
        if out.members[w] > 0:
            _decide(world, w, ready)


@inner
def start_the_promised(world: Session) -> None:
    """Who was promised room by this very plan starts after all if all of it is free: a pledge is of a whole
    node, and its seats may lie beside what comes free there.
    """
    out = world.out
    who = np.empty(out.size[0], np.int64)
    size = 0
    for k in range(out.size[0]):
        if out.reason[out.order[k]] == codes.AWAITS_VICTIMS:
            who[size] = out.order[k]
            size += 1
    if size == 0:
        return
    for w in who[:size]:
        _stand(world.room, out, world.work, w, 1)
    ready = np.zeros(size, np.bool_)
    for i in range(size):
        ready[i] = _has_room_for_all(world, who[i])
    for i in range(size):
        _begin_or_wait(world, who[i], ready[i])
    if ready.any():
        pledge_anew(world.room, out, world.work)


@once
def _begin_or_wait(world: Session, w: int, ready: bool) -> None:
    out, c, q = world.out, world.out.gpu_class[w], world.work.queue[w]
    if not ready or fills_what_leaves(world, q, c, 0):
        _stand(world.room, out, world.work, w, -1)
        return
    gpus = out.members[w] * world.work.need[GPUS, w]
    unpledge_all(world.room, out, w)
    out.action[w] = codes.ADMIT
    take_open(world.room, c, gpus)
    note_started(world, c, q, gpus)
    tell_start(world, w, c)


@inner
def pledge_anew(room: NodeRoom, out: Decisions, work: Work) -> None:
    """Free room goes first to those who are promised it."""
    for w in out.order[: out.size[0]]:
        if out.reason[w] == codes.AWAITS_VICTIMS:
            unpledge_all(room, out, w)
    for w in out.order[: out.size[0]]:
        if out.reason[w] != codes.AWAITS_VICTIMS:
            continue
        for i in range(out.pool.first[w], out.pool.first[w] + out.members[w]):
            pledge(room, work, w, out.pool.node[i], out.pool.device[i])


@inner
def unpledge_all(room: NodeRoom, out: Decisions, w: int) -> None:
    """Nothing is pledged on the nodes of ``w``; ``pledge_anew`` must follow."""
    for i in range(out.pool.first[w], out.pool.first[w] + out.members[w]):
        unpledge(room, out.pool.node[i])


@inner
def _claim(world: Session, w: int) -> int:
    """Sit down on the promised seats, now and later; returns how many, 0 if they do not hold."""
    work, out = world.work, world.out
    if not work.claims[w] or world.holds.head[w] < 0 or out.action[w] != codes.UNDECIDED:
        return 0
    members = sit_as_promised(work, world.holds, world.room, world.seats, w)
    for i in range(members):
        take_now(world.room, work, w, world.seats.node[i], world.seats.device[i], 1)
    seat_out(out, world.seats, w, members)
    return members


@inner
def _has_room_for_all(world: Session, w: int) -> bool:
    out, room = world.out, world.room
    for i in range(out.pool.first[w], out.pool.first[w] + out.members[w]):
        n, device = out.pool.node[i], out.pool.device[i]
        if device >= 0 and room.shared_now[n, device] > ONE:
            return False
        for r in range(3):
            if room.free_now[r, n] < 0:
                return False
    return True


@inner
def _stand(room: NodeRoom, out: Decisions, work: Work, w: int, sign: int) -> None:
    """The seats, which are claimed for later, are taken now as well (1), or no more (-1)."""
    for i in range(out.pool.first[w], out.pool.first[w] + out.members[w]):
        take_now(room, work, w, out.pool.node[i], out.pool.device[i], sign)


@inner
def _decide(world: Session, w: int, ready: Flags) -> None:
    """Start, go on waiting for the victims, or give the seats up where quota forbids it by now."""
    work, out, q, c = world.work, world.out, world.work.queue[w], world.work.gpu_class[w]
    members = recall(out, world.seats, w)
    gpus = members * work.need[GPUS, w]
    allowed = quota_allows(world, w, c, gpus, world.tree.depth[q])
    start = allowed and ready[w] and not fills_what_leaves(world, q, c, gpus)
    if ready[w] and not start:
        _stand(world.room, out, world.work, w, -1)
    out.members[w] = 0
    if start:
        take_open(world.room, c, gpus)
        admit(world, w, c, members)
        note_start(world.queues.round, out.starts, w)
    elif allowed:
        promise(world, w, c, members)
    else:
        unseat(work, world.room, world.seats, w, members)
