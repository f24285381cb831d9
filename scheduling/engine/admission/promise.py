"""Step 2: those to whom an earlier plan promised room that comes free.

They claim the very seats again, all of them, before anybody starts. One starts when its nodes have room
for all who were promised seats there, so which of them is looked at first decides nothing.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.allocate import fills_what_leaves, quota_allows
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import Flags, Ints
from scheduling.engine.placement.node_room import ONE, take_now
from scheduling.engine.placement.place import sit_as_promised
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Work
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.order import Pending
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS
from scheduling.engine.statement.lines import recall, seat_out
from scheduling.engine.statement.operations import admit, promise
from scheduling.engine.statement.statement import unseat


@inner
def seat_the_promised(world: Session) -> None:
    """Claim, look, stand up again where there is no room yet, decide."""
    out, ordering = world.out, world.ordering
    if ordering.pending.promised == 0:
        return
    item = _promised(ordering.pending, world.work.claims)
    ready = np.zeros(out.action.size, np.bool_)
    for w in item:
        out.members[w] = _claim(world, w)
    for w in item:
        ready[w] = out.members[w] > 0 and _has_room_for_all(world.room, out, w)
    for w in item:
        if out.members[w] > 0 and not ready[w]:
            _stand_up(world.work, world.room, out, w)
    for w in item:
        if out.members[w] > 0:
            _decide(world, w, ready)


@once
def _promised(pending: Pending, claims: Flags) -> Ints:
    """Those who were promised room, in line."""
    found, size = np.empty(pending.promised, np.int64), 0
    for k in range(pending.size[0]):
        if claims[pending.slot[k]]:
            found[size] = pending.slot[k]
            size += 1
    return found[:size]


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
def _has_room_for_all(room: NodeRoom, out: Decisions, w: int) -> bool:
    for i in range(out.pool.first[w], out.pool.first[w] + out.members[w]):
        n, device = out.pool.node[i], out.pool.device[i]
        if device >= 0 and room.shared_now[n, device] > ONE:
            return False
        for r in range(3):
            if room.free_now[r, n] < 0:
                return False
    return True


@inner
def _stand_up(work: Work, room: NodeRoom, out: Decisions, w: int) -> None:
    """The seats are claimed for later only."""
    for i in range(out.pool.first[w], out.pool.first[w] + out.members[w]):
        take_now(room, work, w, out.pool.node[i], out.pool.device[i], -1)


@inner
def _decide(world: Session, w: int, ready: Flags) -> None:
    """Start, go on waiting for the victims, or give the seats up where quota forbids it by now."""
    tree, quotas, queues = world.tree, world.quotas, world.queues
    work, out, q, c = world.work, world.out, world.work.queue[w], world.work.gpu_class[w]
    members = recall(out, world.seats, w)
    gpus = members * work.need[GPUS, w]
    allowed = quota_allows(world, w, c, gpus, tree.depth[q])
    start = allowed and ready[w] and not fills_what_leaves(tree, quotas, queues, q, c, gpus)
    if ready[w] and not start:
        _stand_up(work, world.room, out, w)
    out.members[w] = 0
    if start:
        admit(world, w, c, members)
    elif allowed:
        promise(world, w, c, members)
    else:
        unseat(work, world.room, world.seats, w, members)
