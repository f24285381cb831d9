"""What happens to workloads between cycles: every change of their slots and holds.

Python tells a frame of it through its methods, a compiled loop calls the same functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from scheduling.engine.compile.heap import pop, push
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Ints
from scheduling.engine.state.input import Holds, Pool
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.order import UNKNOWN, note_pending, note_running
from scheduling.engine.state.units import DAY_S, FREE, PENDING, RUNNING

SLOTS, HOLDS = 0, 1
"""How much is unused, in ``Pool.left``."""


@kernel
def take_slot(world: Any) -> int:
    """The lowest slot that nobody uses; the caller has made sure that one is left."""
    pool = world.pool
    w = int(pool.slots[0])
    pool.left[SLOTS] = pop(pool.slots, 0, pool.left[SLOTS])
    return w


@kernel
def arrive(world: Any, w: int) -> None:
    """The workload described in slot ``w`` is pending."""
    world.work.phase[w] = PENDING
    world.shapes.of[w] = UNKNOWN
    note_pending(world.ordering, w)


@kernel
def start(world: Any, w: int, c: int, nodes: Ints, devices: Ints, now: float) -> None:
    """``w`` runs from now on, a member on each of the seats (device -1: whole GPUs)."""
    work = world.work
    work.phase[w], work.members[w] = RUNNING, nodes.size
    work.started[w], work.checkpointed[w] = now, -np.inf
    work.claims[w], work.room_due[w] = False, np.inf
    note_running(world.ordering, w)
    sit_down(world, w, c, nodes, devices)


@kernel
def promise(world: Any, w: int, c: int, nodes: Ints, devices: Ints) -> None:
    """The seats are kept for ``w``, which is pending."""
    world.work.claims[w] = True
    sit_down(world, w, c, nodes, devices)


@kernel
def forget_promise(world: Any, w: int) -> None:
    """``w`` waits like any other."""
    work = world.work
    work.claims[w], work.room_due[w], work.gpu_class[w] = False, np.inf, -1
    let_go(world.holds, world.room, world.pool, w)


@kernel
def find_holds(world: Any) -> None:
    """Lists by node those who sit anywhere, into fresh tables."""
    holds = world.holds
    for w in range(world.work.phase.size):
        h = holds.head[w]
        while h >= 0:
            _link(world.room, w, h, holds.node[h])
            h = holds.next[h]


@kernel
def leave(world: Any, w: int, rival: int, now: float) -> None:
    """``w`` is evicted, to make room for ``rival`` if there is one (-1); its pods still hold GPUs."""
    work = world.work
    work.evictions[w] = 1 if work.evicted[w] <= now - DAY_S else work.evictions[w] + 1
    work.leaving[w], work.evicted[w] = True, now
    work.evicted_for[w] = work.tie[rival] if rival >= 0 else -1
    h = world.holds.head[w]
    while h >= 0:
        _is_stale(world.room, world.holds.node[h])
        h = world.holds.next[h]


@kernel
def resize(world: Any, w: int, nodes: Ints, devices: Ints) -> None:
    """Running ``w`` has a member on each of the seats from now on."""
    sit_down(world, w, world.work.gpu_class[w], nodes, devices)
    world.work.members[w] = nodes.size


@kernel
def requeue(world: Any, w: int) -> None:
    """An evicted workload is pending again; it keeps its submit time."""
    work = world.work
    let_go(world.holds, world.room, world.pool, w)
    work.phase[w], work.leaving[w], work.members[w] = PENDING, False, 0
    work.claims[w], work.gpu_class[w], work.stale[w] = False, -1, np.inf
    note_pending(world.ordering, w)


@kernel
def finish(world: Any, w: int) -> None:
    """``w`` is over or cancelled; its slot is free."""
    let_go(world.holds, world.room, world.pool, w)
    world.work.phase[w], world.work.leaving[w] = FREE, False
    pool = world.pool
    pool.left[SLOTS] = push(pool.slots, 0, pool.left[SLOTS], w)


@inner
def sit_down(world: Any, w: int, c: int, nodes: Ints, devices: Ints) -> None:
    let_go(world.holds, world.room, world.pool, w)
    world.work.gpu_class[w] = c
    for i in range(nodes.size):
        _hold(world.holds, world.room, world.pool, w, nodes[i], devices[i])


@inner
def let_go(holds: Holds, room: NodeRoom, pool: Pool, w: int) -> None:
    h = holds.head[w]
    while h >= 0:
        _unlink(room, h, holds.node[h])
        pool.left[HOLDS] = push(pool.holds, 0, pool.left[HOLDS], h)
        h = holds.next[h]
    holds.head[w] = -1


@inner
def _hold(holds: Holds, room: NodeRoom, pool: Pool, w: int, n: int, device: int) -> None:
    """One member more on the seat. Holds stand in descending order, whatever the order of the seats."""
    before, h = -1, holds.head[w]
    while h >= 0 and (holds.node[h] > n or (holds.node[h] == n and holds.device[h] > device)):
        before, h = h, holds.next[h]
    if h >= 0 and holds.node[h] == n and holds.device[h] == device:
        holds.members[h] += 1
        return
    fresh = pool.holds[0]
    pool.left[HOLDS] = pop(pool.holds, 0, pool.left[HOLDS])
    holds.node[fresh], holds.device[fresh], holds.members[fresh] = n, device, 1
    holds.next[fresh] = h
    if before < 0:
        holds.head[w] = fresh
    else:
        holds.next[before] = fresh
    _link(room, w, fresh, n)


@inner
def _link(room: NodeRoom, w: int, h: int, n: int) -> None:
    front = room.holders.first[n]
    room.holders.owner[h], room.holders.before[h], room.holders.after[h] = w, -1, front
    if front >= 0:
        room.holders.before[front] = h
    room.holders.first[n] = h
    _is_stale(room, n)


@inner
def _unlink(room: NodeRoom, h: int, n: int) -> None:
    before, after = room.holders.before[h], room.holders.after[h]
    if before >= 0:
        room.holders.after[before] = after
    else:
        room.holders.first[n] = after
    if after >= 0:
        room.holders.before[after] = before
    _is_stale(room, n)


@inner
def _is_stale(room: NodeRoom, n: int) -> None:
    """All rows of the machine: they share its CPUs and memory."""
    room.holders.stale[n] = True
    row = room.next_on_machine[n]
    while row != n:
        room.holders.stale[row] = True
        row = room.next_on_machine[row]


def columns(seats: Iterable[tuple[int, int]]) -> tuple[Ints, Ints]:
    """Nodes and devices."""
    table = np.array(list(seats), np.int64).reshape(-1, 2)
    return np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])


@inner
def settle_node(room: NodeRoom, n: int) -> None:
    """The holders of node ``n`` have been noted."""
    room.holders.stale[n] = False
