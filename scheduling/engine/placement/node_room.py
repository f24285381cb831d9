"""One member on one node: does it fit, what does it take, what does it give back.

A member of whole GPUs takes them from the node. A member below one GPU takes a share of one GPU: of
one that is shared already if it fits there, otherwise it opens another. ``when`` is NOW (free and
unclaimed) or LATER (free once leaving work is gone).
"""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.snapshot.events import settle_node
from scheduling.engine.state.decisions import SeatPool
from scheduling.engine.state.input import Holds, Nodes, Work
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.roles import beside_on
from scheduling.engine.state.units import BACKFILL, CPUS, GPUS, LATER, NOW, RUNNING

ONE = 1000


@inner
def free_of(room: NodeRoom, r: int, n: int, when: int) -> int:
    """What a newcomer may take of resource ``r`` on node ``n``."""
    if when == BACKFILL:
        return room.free_now[r, n] - room.pledged[r, n]
    if when == NOW:
        return min(room.free_now[r, n] - room.pledged[r, n], room.free_later[r, n])
    return room.free_later[r, n] if when == LATER else room.free_now[r, n]


@inner
def may_use(room: NodeRoom, work: Work, w: int, n: int) -> bool:
    """Whether node ``n`` is one of those that ``w`` may use, whatever is free there."""
    return bool(work.where[w] < 0 or room.allowed[work.where[w], n])


@inner
def slots_on(room: NodeRoom, work: Work, w: int, n: int, when: int) -> int:
    """Members of ``w`` that fit on node ``n``."""
    slots = slots_of_gpus(room, work, w, n, when)
    for r in range(CPUS, work.need.shape[0]):
        if work.need[r, w] > 0:
            slots = min(slots, free_of(room, r, n, when) // work.need[r, w])
    return max(slots, 0)


@inner
def slots_of_gpus(room: NodeRoom, work: Work, w: int, n: int, when: int) -> int:
    """Members of ``w`` for which node ``n`` has the GPUs; none where it may not run."""
    gpus = work.need[GPUS, w]
    free = free_of(room, GPUS, n, when)
    if (gpus > free and gpus >= ONE) or not may_use(room, work, w, n):
        return 0
    if gpus >= ONE:
        slots = free // gpus
    elif gpus > 0:
        slots = max(free, 0) // ONE * (ONE // gpus)
        for d in range(room.shared_now.shape[1]):
            slots += left_on(room, n, d, when) // gpus
    else:
        slots = work.most[w]
    return max(slots, 0)


@inner
def left_on(room: NodeRoom, n: int, d: int, when: int) -> int:
    """What is left of a GPU that is shared already; nothing of one that is not, or soon will not be."""
    now, later = room.shared_now[n, d], room.shared_later[n, d]
    if when == LATER:
        return max(0, ONE - later) if later > 0 else 0
    if now == 0 or (when == NOW and later == 0):
        return 0
    return max(0, ONE - (max(now, later) if when == NOW else now))


@inner
def pick_device(room: NodeRoom, work: Work, w: int, n: int, when: int) -> int:
    """The GPU a share goes to: the shared one it fills best, lowest on ties, else the first unshared;
    LATER rather one that leaving work empties.

    -1 for whole GPUs.
    """
    gpus = work.need[GPUS, w]
    if gpus >= ONE or gpus == 0:
        return -1
    best, least, fresh = -1, ONE + 1, -1
    for d in range(room.shared_now.shape[1]):
        left = left_on(room, n, d, when)
        if gpus <= left < least:
            best, least = d, left
        now, later = room.shared_now[n, d], room.shared_later[n, d]
        emptied = when == LATER and now > 0 and (fresh < 0 or room.shared_now[n, fresh] == 0)
        if later == 0 and (emptied or (fresh < 0 and now == 0)):
            fresh = d
    return best if best >= 0 else fresh


@inner
def sit(room: NodeRoom, work: Work, w: int, n: int, device: int, when: int) -> None:
    """Take the seat: a start (NOW) takes it at once, a claim (LATER) from what comes free. Work that
    backfills is gone by then."""
    _move(room, work, w, n, device, 1, when != LATER, when != BACKFILL)


@inner
def rise(room: NodeRoom, work: Work, w: int, n: int, device: int, when: int) -> None:
    """Undo ``sit``."""
    _move(room, work, w, n, device, -1, when != LATER, when != BACKFILL)


@inner
def leave(room: NodeRoom, work: Work, w: int, n: int, device: int, members: int) -> None:
    """Members that hold GPUs now will be gone."""
    _move(room, work, w, n, device, -members, False, True)


@inner
def occupy(room: NodeRoom, work: Work, w: int, n: int, device: int, members: int) -> None:
    """Members that hold GPUs; ``leave`` them back, with a negative number, by the same arithmetic."""
    _move(room, work, w, n, device, members, True, True)


@inner
def stay(room: NodeRoom, work: Work, w: int, n: int, device: int, members: int) -> None:
    """Undo ``leave``."""
    _move(room, work, w, n, device, members, False, True)


@inner
def fits_at(room: NodeRoom, work: Work, w: int, n: int, device: int, when: int) -> bool:
    """Whether one member fits this very seat: NOW free and not pledged, or LATER."""
    gpus = work.need[GPUS, w]
    if not may_use(room, work, w, n):
        return False
    if device >= 0:
        used = (room.shared_later if when == LATER else room.shared_now)[n, device]
        if used + gpus > ONE:
            return False
        gpus = ONE if used == 0 else 0
    one = beside_on(work, w, device)
    for r in range(work.need.shape[0]):
        need = gpus if r == GPUS else work.need[r, one]
        free = room.free_later[r, n] if when == LATER else room.free_now[r, n] - room.pledged[r, n]
        if need > 0 and free < need:
            return False
    return True


@inner
def pledge(
    room: NodeRoom, work: Work, pool: SeatPool, w: int, seat: int, sign: int, anew: bool
) -> None:
    """Free room on the node of a claimed seat goes to the claim first (1): nobody else starts on it; or no
    more (-1). What is free there by now, if ``anew``; else what was.
    """
    n, device = pool.node[seat], pool.device[seat]
    one = beside_on(work, w, device)
    for r in range(work.need.shape[0]):
        if anew:
            need = work.need[r, w if r == GPUS else one]
            if r == GPUS and device >= 0:
                need = ONE if room.shared_now[n, device] == 0 else 0
            pool.pledged[r, seat] = max(0, min(need, room.free_now[r, n] - room.pledged[r, n]))
        taken = sign * pool.pledged[r, seat]
        room.pledged[r, n] += taken
        row = room.next_on_machine[n]
        while r != GPUS and row != n:
            room.pledged[r, row] += taken
            row = room.next_on_machine[row]
    touch_machine(room, n)


@inner
def take_now(room: NodeRoom, work: Work, w: int, n: int, device: int, members: int) -> None:
    """A claimed seat becomes a start (1), or not after all (-1)."""
    _move(room, work, w, n, device, members, True, False)


@inner
def _move(
    room: NodeRoom, work: Work, w: int, n: int, device: int, members: int, now: bool, later: bool
) -> None:
    """Take ``members`` (negative: give back) from the tables of now and of later."""
    c, one = work.need[GPUS, w] * members, beside_on(work, w, device)
    if now:
        room.free_now[GPUS, n] -= _whole(room.shared_now, n, device, c)
        _take_shared(room.free_now, room.next_on_machine, work, one, n, members)
    if later:
        room.free_later[GPUS, n] -= _whole(room.shared_later, n, device, c)
        _take_shared(room.free_later, room.next_on_machine, work, one, n, members)
    touch_machine(room, n)


@inner
def _take_shared(table: Ints, beside: Ints, work: Work, w: int, n: int, members: int) -> None:
    """All but GPUs, which all rows of a machine share."""
    row = n
    while True:
        for r in range(CPUS, work.need.shape[0]):
            table[r, row] -= work.need[r, w] * members
        row = beside[row]
        if row == n:
            return


@inner
def touch_machine(room: NodeRoom, n: int) -> None:
    row = room.next_on_machine[n]
    while row != n:
        touch(room, row)
        row = room.next_on_machine[row]
    touch(room, n)


@inner
def touch_all(room: NodeRoom) -> None:
    """Every node has changed."""
    for c in range(room.changes.newest.size):
        room.changes.newest[c] = -1
    begin_plan(room)
    room.changes.cleared_at = room.changes.clock


@inner
def begin_plan(room: NodeRoom) -> None:
    """What changes from now on is a decision of this plan."""
    room.changes.clock += 1
    room.changes.plan_began_at = room.changes.clock


@inner
def touch(room: NodeRoom, n: int) -> None:
    """Node ``n`` has changed: to the front of its class's list of changes."""
    tick, c = room.changes.clock + 1, room.gpu_class[n]
    front = room.changes.newest[c]
    if front != n:
        if room.changes.changed_at[n] > room.changes.cleared_at:
            before, after = room.changes.older[n], room.changes.newer[n]
            room.changes.older[after] = before
            if before >= 0:
                room.changes.newer[before] = after
        room.changes.older[n], room.changes.newer[n] = front, -1
        if front >= 0:
            room.changes.newer[front] = n
        room.changes.newest[c] = n
    room.changes.changed_at[n] = room.changes.clock = tick


@inner
def _whole(shared: Ints, n: int, device: int, gpus: int) -> int:
    """What the node's whole GPUs lose when ``gpus`` more are used on ``device`` (-1: whole)."""
    if device < 0:
        return gpus
    before = shared[n, device]
    after = before + gpus
    shared[n, device] = after
    if before <= 0 < after:
        return ONE
    if after <= 0 < before:
        return -ONE
    return 0


@inner
def clear_room(nodes: Nodes, room: NodeRoom) -> None:
    """All nodes free."""
    for n in range(room.gpu_class.size):
        _empty(nodes, room, n)
    touch_all(room)


@inner
def _empty(nodes: Nodes, room: NodeRoom, n: int) -> None:
    """Loops, because assigning arrays to slices compiles slowly."""
    size = nodes.size
    for r in range(size.shape[0]):
        room.free_now[r, n] = room.free_later[r, n] = size[r, n] - nodes.foreign[r, n]
        room.pledged[r, n] = 0
    for d in range(room.shared_now.shape[1]):
        room.shared_now[n, d] = room.shared_later[n, d] = 0


@inner
def lay_out(nodes: Nodes, work: Work, holds: Holds, room: NodeRoom) -> None:
    """Running work sits where it sits. Nodes where nobody came or left are as they were noted; those that
    the plan before did not touch still are.
    """
    for n in range(room.holders.stale.size):
        if room.holders.stale[n]:
            _empty(nodes, room, n)
    for n in range(room.holders.stale.size):
        if room.holders.stale[n]:
            _occupy_node(work, holds, room, n)
    for n in range(room.holders.stale.size):
        if room.holders.stale[n]:
            _note(room, n)
        elif room.changes.changed_at[n] > room.changes.plan_began_at:
            _recall(room, n)
        else:
            continue
        settle_node(room, n)
        touch(room, n)
    begin_plan(room)


@inner
def _occupy_node(work: Work, holds: Holds, room: NodeRoom, n: int) -> None:
    """Work that leaves holds its room now, not later; a claim holds nothing yet."""
    h = room.holders.first[n]
    while h >= 0:
        w = room.holders.owner[h]
        if work.phase[w] == RUNNING:
            occupy(room, work, w, n, holds.device[h], holds.members[h])
            if work.leaving[w]:
                leave(room, work, w, n, holds.device[h], holds.members[h])
        h = room.holders.after[h]


@inner
def _note(room: NodeRoom, n: int) -> None:
    base = room.baseline.free
    for r in range(room.free_now.shape[0]):
        base[0, r, n], base[1, r, n] = room.free_now[r, n], room.free_later[r, n]
    room.baseline.open[n] = max(0, room.free_now[GPUS, n])
    for d in range(room.shared_now.shape[1]):
        used = room.shared_now[n, d]
        room.baseline.shared[0, n, d], room.baseline.shared[1, n, d] = used, room.shared_later[n, d]
        room.baseline.open[n] += max(0, ONE - used) if used > 0 else 0


@inner
def _recall(room: NodeRoom, n: int) -> None:
    base = room.baseline.free
    for r in range(room.free_now.shape[0]):
        room.free_now[r, n], room.free_later[r, n] = base[0, r, n], base[1, r, n]
        room.pledged[r, n] = 0
    for d in range(room.shared_now.shape[1]):
        room.shared_now[n, d] = room.baseline.shared[0, n, d]
        room.shared_later[n, d] = room.baseline.shared[1, n, d]


@inner
def sum_open(nodes: Nodes, room: NodeRoom) -> None:
    """Free GPUs of each class, from those of its nodes."""
    for c in range(room.open.size):
        room.open[c] = 0
        for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
            room.open[c] += room.baseline.open[nodes.of_class[i]]


@inner
def clear_coming(room: NodeRoom) -> None:
    """Nothing is about to come free, and nobody claims any of it."""
    for c in range(room.coming.size):
        room.coming[c] = room.claimed[c] = 0


@inner
def note_coming_free(room: NodeRoom, c: int, gpus: int) -> None:
    """``gpus`` of class ``c`` come free; less than zero: they stay after all."""
    room.coming[c] += gpus


@inner
def claim(room: NodeRoom, c: int, gpus: int) -> None:
    """``gpus`` of class ``c`` that are free, or come free, are promised to somebody."""
    room.claimed[c] += gpus


@inner
def unclaimed(room: NodeRoom, c: int) -> int:
    """Milli-GPU of class ``c`` that are free, or come free, for who was promised nothing."""
    return int(room.open[c] + room.coming[c] - room.claimed[c])


@inner
def begin_round(room: NodeRoom) -> None:
    """What comes free from now on was not known when this round began."""
    for c in range(room.coming.size):
        room.came[c] = room.coming[c]


@inner
def take_open(room: NodeRoom, c: int, gpus: int) -> None:
    """``gpus`` of class ``c`` are free no more; less than zero: they are again."""
    room.open[c] -= gpus
