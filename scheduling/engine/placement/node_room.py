"""One member on one node: does it fit, what does it take, what does it give back.

A member of whole GPUs takes them from the node. A member below one GPU takes a share of one GPU: of
one that is shared already if it fits there, otherwise it opens another. ``when`` is NOW (free and
unclaimed) or LATER (free once leaving work is gone).
"""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import Ints
from scheduling.engine.state.input import Work
from scheduling.engine.state.nodes import Room
from scheduling.engine.state.session import World
from scheduling.engine.state.units import BACKFILL, CPUS, GPUS, LATER, MEMORY, NOW, RUNNING

ONE = 1000


@once
def free_of(room: Room, r: int, n: int, when: int) -> int:
    """What a newcomer may take of resource ``r`` on node ``n``."""
    if when == BACKFILL:
        return room.now[r, n] - room.pledged[r, n]
    if when == NOW:
        return min(room.now[r, n] - room.pledged[r, n], room.later[r, n])
    return room.later[r, n] if when == LATER else room.now[r, n]


@once
def may_use(room: Room, work: Work, w: int, n: int) -> bool:
    """Whether node ``n`` is one of those that ``w`` may use, whatever is free there."""
    return bool(work.where[w] < 0 or room.allowed[work.where[w], n])


@inner
def slots_on(room: Room, work: Work, w: int, n: int, when: int) -> int:
    """Members of ``w`` that fit on node ``n``."""
    slots = slots_of_gpus(room, work, w, n, when)
    for r in (CPUS, MEMORY):
        if work.need[r, w] > 0:
            slots = min(slots, free_of(room, r, n, when) // work.need[r, w])
    return max(slots, 0)


@inner
def slots_of_gpus(room: Room, work: Work, w: int, n: int, when: int) -> int:
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


@once
def left_on(room: Room, n: int, d: int, when: int) -> int:
    """What is left of a GPU that is shared already; nothing of one that is not, or soon will not be."""
    now, later = room.shared_now[n, d], room.shared_later[n, d]
    if when == LATER:
        return max(0, ONE - later) if later > 0 else 0
    if now == 0 or (when == NOW and later == 0):
        return 0
    return max(0, ONE - (max(now, later) if when == NOW else now))


@inner
def pick_device(room: Room, work: Work, w: int, n: int, when: int) -> int:
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


@once
def sit(room: Room, work: Work, w: int, n: int, device: int, when: int) -> None:
    """Take the seat: a start (NOW) takes it at once, a claim (LATER) from what comes free. Who backfills
    is gone by then.
    """
    _move(room, work, w, n, device, 1, when != LATER, when != BACKFILL)


@once
def leave(room: Room, work: Work, w: int, n: int, device: int, members: int) -> None:
    """Members that hold GPUs now will be gone."""
    _move(room, work, w, n, device, -members, False, True)


@once
def occupy(room: Room, work: Work, w: int, n: int, device: int, members: int) -> None:
    """Members that hold GPUs; ``leave`` them back, with a negative number, by the same arithmetic."""
    _move(room, work, w, n, device, members, True, True)


@once
def stay(room: Room, work: Work, w: int, n: int, device: int, members: int) -> None:
    """Undo ``leave``."""
    _move(room, work, w, n, device, members, False, True)


@inner
def fits_at(room: Room, work: Work, w: int, n: int, device: int, when: int) -> bool:
    """Whether one member fits this very seat: NOW free and not pledged, or LATER."""
    gpus = work.need[GPUS, w]
    if not may_use(room, work, w, n):
        return False
    if device >= 0:
        used = (room.shared_later if when == LATER else room.shared_now)[n, device]
        if used + gpus > ONE:
            return False
        gpus = ONE if used == 0 else 0
    for r in range(3):
        need = gpus if r == GPUS else work.need[r, w]
        free = room.later[r, n] if when == LATER else room.now[r, n] - room.pledged[r, n]
        if need > 0 and free < need:
            return False
    return True


@inner
def pledge(room: Room, work: Work, w: int, n: int, device: int) -> None:
    """Free room on the node of a claimed seat goes to the claim first: nobody else starts on it."""
    for r in range(3):
        need = work.need[r, w]
        if r == GPUS and device >= 0:
            need = ONE if room.shared_now[n, device] == 0 else 0
        taken = max(0, min(need, room.now[r, n] - room.pledged[r, n]))
        room.pledged[r, n] += taken
        row = room.beside[n]
        while r != GPUS and row != n:
            room.pledged[r, row] += taken
            row = room.beside[row]
    touch_machine(room, n)


@once
def take_now(room: Room, work: Work, w: int, n: int, device: int, members: int) -> None:
    """A claimed seat becomes a start (1), or not after all (-1)."""
    _move(room, work, w, n, device, members, True, False)


@inner
def _move(
    room: Room, work: Work, w: int, n: int, device: int, members: int, now: bool, later: bool
) -> None:
    """Take ``members`` (negative: give back) from the tables of now and of later."""
    c = work.need[GPUS, w] * members
    if now:
        room.now[GPUS, n] -= _whole(room.shared_now, n, device, c)
        _take_shared(room.now, room.beside, work, w, n, members)
    if later:
        room.later[GPUS, n] -= _whole(room.shared_later, n, device, c)
        _take_shared(room.later, room.beside, work, w, n, members)
    touch_machine(room, n)


@once
def _take_shared(table: Ints, beside: Ints, work: Work, w: int, n: int, members: int) -> None:
    """CPUs and memory, which all rows of a machine share."""
    row = n
    while True:
        table[CPUS, row] -= work.need[CPUS, w] * members
        table[MEMORY, row] -= work.need[MEMORY, w] * members
        row = beside[row]
        if row == n:
            return


@once
def touch_machine(room: Room, n: int) -> None:
    row = room.beside[n]
    while row != n:
        touch(room, row)
        row = room.beside[row]
    touch(room, n)


@once
def touch_all(room: Room) -> None:
    """Every node has changed."""
    for c in range(room.newest.size):
        room.newest[c] = -1
    begin_plan(room)
    room.tick[1] = room.tick[0]


@once
def begin_plan(room: Room) -> None:
    """What changes from now on is a decision of this plan."""
    room.tick[0] += 1
    room.tick[2] = room.tick[0]


@inner
def touch(room: Room, n: int) -> None:
    """Node ``n`` has changed: to the front of its class's list of changes."""
    tick, c = room.tick[0] + 1, room.kind[n]
    front = room.newest[c]
    if front != n:
        if room.touched[n] > room.tick[1]:
            before, after = room.older[n], room.newer[n]
            room.older[after] = before
            if before >= 0:
                room.newer[before] = after
        room.older[n], room.newer[n] = front, -1
        if front >= 0:
            room.newer[front] = n
        room.newest[c] = n
    room.touched[n] = room.tick[0] = tick


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
def clear_room(world: World) -> None:
    """All nodes free."""
    for n in range(world.room.kind.size):
        _empty(world, n)
    touch_all(world.room)


@once
def _empty(world: World, n: int) -> None:
    """Loops, because assigning arrays to slices compiles slowly."""
    room, size = world.room, world.nodes.size
    for r in range(3):
        room.now[r, n] = room.later[r, n] = size[r, n]
        room.pledged[r, n] = 0
    for d in range(room.shared_now.shape[1]):
        room.shared_now[n, d] = room.shared_later[n, d] = 0


@inner
def lay_out(world: World) -> None:
    """Running work sits where it sits. Nodes where nobody came or left are as they were noted; those that
    the plan before did not touch still are.
    """
    room = world.room
    for n in range(room.stale.size):
        if room.stale[n]:
            _empty(world, n)
    for n in range(room.stale.size):
        if room.stale[n]:
            _occupy_node(world, n)
    for n in range(room.stale.size):
        if room.stale[n]:
            _note(room, n)
        elif room.touched[n] > room.tick[2]:
            _recall(room, n)
        else:
            continue
        room.stale[n] = False
        touch(room, n)
    begin_plan(room)


@inner
def _occupy_node(world: World, n: int) -> None:
    """Work that leaves holds its room now, not later; who is promised room holds nothing yet."""
    room, work, holds = world.room, world.work, world.holds
    h = room.first[n]
    while h >= 0:
        w = room.owner[h]
        if work.phase[w] == RUNNING:
            occupy(room, work, w, n, holds.device[h], holds.members[h])
            if work.leaving[w]:
                leave(room, work, w, n, holds.device[h], holds.members[h])
        h = room.after[h]


@once
def _note(room: Room, n: int) -> None:
    for r in range(3):
        room.kept[r, n], room.kept[3 + r, n] = room.now[r, n], room.later[r, n]
    room.kept_open[n] = max(0, room.now[GPUS, n])
    for d in range(room.shared_now.shape[1]):
        used = room.shared_now[n, d]
        room.kept_shared[0, n, d], room.kept_shared[1, n, d] = used, room.shared_later[n, d]
        room.kept_open[n] += max(0, ONE - used) if used > 0 else 0


@once
def _recall(room: Room, n: int) -> None:
    for r in range(3):
        room.now[r, n], room.later[r, n] = room.kept[r, n], room.kept[3 + r, n]
        room.pledged[r, n] = 0
    for d in range(room.shared_now.shape[1]):
        room.shared_now[n, d] = room.kept_shared[0, n, d]
        room.shared_later[n, d] = room.kept_shared[1, n, d]


@inner
def sum_open(world: World) -> None:
    """Free GPUs of each class, from those of its nodes."""
    room, nodes = world.room, world.nodes
    for c in range(room.open.size):
        room.open[c] = 0
        for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
            room.open[c] += room.kept_open[nodes.of_class[i]]
