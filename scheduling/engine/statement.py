"""Trying what others do for one workload: they leave, give members up, move, or step back from a start of
this very plan, virtually and in a log.

``Prey.picked`` and ``Prey.part`` are the log, ``mark`` its end. All that was tried since a mark is undone
together, last first; one alone may be undone, and done again, out of order, since room and usage are sums.
A search looks at its own part of the log alone, which begins where those end who step back before it
(``search_on``). What stays in the log is carried out: those who leave, shrink or move by ``rooming``, those
who step back by ``precedence``.
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.arrays import GPUS, Room, Seats, Work
from scheduling.engine.compiled import inner, once
from scheduling.engine.limits import book_start
from scheduling.engine.prey import END, FIRST, Prey, core_of, gpus_of
from scheduling.engine.seating import leave, occupy, stay
from scheduling.engine.standing import charge
from scheduling.engine.world import World

LEAVES, MOVES, STEPS_BACK = -1, -2, -3
"""In ``part``, in place of the hold of which a member is given up: the whole gang leaves; it moves; or it
starts, or was to move, in this plan and gives its seats back.
"""


@inner
def begin(world: World) -> None:
    """A search has tried nothing yet."""
    world.prey.count[END], world.book.spent[0] = world.prey.count[FIRST], 0


@inner
def search_on(world: World) -> None:
    """What has been tried stands, whatever the searches that follow try; until ``search_afresh``."""
    world.prey.count[FIRST] = world.prey.count[END]


@inner
def search_afresh(world: World) -> None:
    """The searches that follow begin with nothing."""
    world.prey.count[FIRST] = 0


@once
def mark(world: World) -> int:
    return world.prey.count[END]


@inner
def let_go(world: World, v: int) -> None:
    """``v`` leaves."""
    _log(world, v, LEAVES)


@inner
def give_member(world: World, v: int, h: int) -> None:
    """One member of hold ``h`` is given up."""
    _log(world, v, h)


@inner
def lift(world: World, v: int) -> None:
    """``v``, which sits on one node, is about to move; its new seats are in ``out`` once it has any."""
    _log(world, v, MOVES)


@inner
def step_back(world: World, v: int) -> None:
    """``v``, which starts or was to move, gives its seats back."""
    _log(world, v, STEPS_BACK)


@inner
def _log(world: World, v: int, part: int) -> None:
    prey, at = world.prey, world.prey.count[END]
    prey.picked[at], prey.part[at] = v, part
    prey.count[END] += 1
    redo_one(world, at)


@inner
def undo(world: World, to: int) -> None:
    """All as it was at the mark ``to``."""
    while world.prey.count[END] > to:
        world.prey.count[END] -= 1
        undo_one(world, world.prey.count[END])


@inner
def undo_all(world: World) -> None:
    """Whatever the search at work has tried."""
    undo(world, world.prey.count[FIRST])


@inner
def undo_one(world: World, k: int) -> None:
    """The ``k``-th stays after all."""
    _do(world, world.prey.picked[k], world.prey.part[k], -1)


@inner
def redo_one(world: World, k: int) -> None:
    """The ``k``-th does what the log says, once more if that was undone alone."""
    _do(world, world.prey.picked[k], world.prey.part[k], 1)


@inner
def _do(world: World, v: int, part: int, sign: int) -> None:
    if part >= 0:
        _give(world, v, part, sign)
        return
    if part == STEPS_BACK:
        _take(world, v, -sign)
        return
    world.prey.chosen[v] = sign > 0
    if part == LEAVES:
        _let(world, v, sign)
        return
    if sign < 0:
        stand_up(world, v)
    h = world.holds.head[v]
    node, device, members = world.holds.node[h], world.holds.device[h], world.work.members[v]
    leave(world.room, world.work, v, node, device, sign * members)
    _spend(world, v, sign * gpus_of(world.work, v))


@inner
def strike(prey: Prey, k: int) -> None:
    """The ``k``-th was undone alone and is not done again: a gap until ``squeeze``."""
    prey.picked[k] = -1


@inner
def squeeze(prey: Prey, before: int) -> None:
    """Close the gaps from ``before`` on."""
    end = before
    for k in range(before, prey.count[END]):
        if prey.picked[k] >= 0:
            prey.picked[end], prey.part[end] = prey.picked[k], prey.part[k]
            end += 1
    prey.count[END] = end


@inner
def stand_up(world: World, v: int) -> None:
    """``v``, which was about to move, gives back its new seats if it has any."""
    out, members = world.out, world.out.members[v]
    if members == 0:
        return
    for i in range(out.first[v], out.first[v] + members):
        occupy(world.room, world.work, v, out.pool_node[i], out.pool_device[i], -1)
    if out.first[v] + members == out.used[1]:
        out.used[1] = out.first[v]
    world.room.open[world.work.gpu_class[v]] += members * world.work.need[GPUS, v]
    out.members[v] = 0


@inner
def _take(world: World, v: int, sign: int) -> None:
    """``v`` takes its seats (1), or gives them back (-1)."""
    out, work, c = world.out, world.work, world.out.gpu_class[v]
    promised = out.action[v] == codes.RESERVE
    for i in range(out.first[v], out.first[v] + out.members[v]):
        if promised:
            leave(world.room, work, v, out.pool_node[i], out.pool_device[i], -sign)
        else:
            occupy(world.room, work, v, out.pool_node[i], out.pool_device[i], sign)
    members = sign * out.members[v]
    gpus = members * work.need[GPUS, v]
    if not promised:
        world.room.open[c] -= gpus
    if out.action[v] == codes.ADMIT:
        world.book.begun[c, work.queue[v]] += gpus
    charge(world, v, c, members, False)
    book_start(world, v, sign)


@inner
def unseat(work: Work, room: Room, seats: Seats, w: int, sat: int) -> None:
    """Undo the claims of the first ``sat`` seats."""
    for i in range(sat):
        leave(room, work, w, seats.node[i], seats.device[i], 1)


@once
def release(world: World, v: int) -> None:
    """Reckon with ``v`` gone: its room is free later, its queues hold less, their budgets shrink."""
    _let(world, v, 1)


@once
def restore(world: World, v: int) -> None:
    """Undo ``release``."""
    _let(world, v, -1)


@inner
def _let(world: World, v: int, sign: int) -> None:
    """What ``v`` gave up before has left already."""
    work, holds, prey = world.work, world.holds, world.prey
    h = holds.head[v]
    while h >= 0:
        members = holds.members[h] - prey.gone[h]
        if sign > 0:
            leave(world.room, work, v, holds.node[h], holds.device[h], members)
        else:
            stay(world.room, work, v, holds.node[h], holds.device[h], members)
        h = holds.next[h]
    members = work.members[v] - prey.given[v]
    fixed = work.priority[v] >= 0 and not world.ranks.preemptible[work.priority[v]]
    charge(world, v, work.gpu_class[v], -sign * members, fixed)
    book_start(world, v, -sign)
    _spend(world, v, sign * core_of(work, v))


@inner
def _spend(world: World, v: int, gpus: int) -> None:
    """Take ``gpus`` from the eviction budgets above ``v`` and count them in the cap."""
    world.book.spent[0] += gpus
    q = world.work.queue[v]
    while q > 0:
        world.book.budget[q] -= gpus
        q = world.tree.parent[q]


@inner
def _give(world: World, v: int, h: int, sign: int) -> None:
    """Reckon with one member of hold ``h`` given up (1), or with it back (-1)."""
    work, holds, prey = world.work, world.holds, world.prey
    leave(world.room, work, v, holds.node[h], holds.device[h], sign)
    charge(world, v, work.gpu_class[v], -sign, False)
    prey.gone[h] += sign
    prey.given[v] += sign
