"""Writing decisions down."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.arrays import BEGUN, BOUND, GPUS, SINCE_DIVIDED, Ints, Out, Seats
from scheduling.engine.changed import HOLDING, changed
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import Hunt
from scheduling.engine.ladder import reprice
from scheduling.engine.limits import book_start
from scheduling.engine.prey import gpus_of, how_many
from scheduling.engine.seating import pledge
from scheduling.engine.standing import branch_of, charge
from scheduling.engine.world import World


@inner
def decide(out: Out, w: int, action: int, reason: int, c: int, members: int) -> None:
    """One line of the plan. An earlier one is withdrawn: of a wait for another class, of a gang that gives
    up still more.
    """
    if out.noted[w]:
        _withdraw(out, w)
    out.action[w], out.reason[w] = action, reason
    out.gpu_class[w], out.members[w] = c, members
    out.noted[w] = True
    out.order[out.used[0]] = w
    out.used[0] += 1


@inner
def undecide(out: Out, w: int) -> None:
    """Nothing is decided on ``w``. It is taken out of ``order`` by who calls this, for many at a time."""
    out.action[w] = out.reason[w] = codes.UNDECIDED
    out.rival[w] = out.blame[w] = -1
    out.members[w], out.until[w], out.noted[w] = 0, 0.0, False
    for i in range(out.figures.shape[1]):
        out.figures[w, i] = 0.0


@inner
def take_back(out: Out, w: int) -> None:
    """Nothing is decided on ``w``, on which something was."""
    _withdraw(out, w)
    undecide(out, w)


@inner
def _withdraw(out: Out, w: int) -> None:
    out.rival[w], out.blame[w], out.until[w] = -1, -1, 0.0
    k = out.used[0] - 1
    while out.order[k] != w:
        k -= 1
    out.used[0] -= 1
    for i in range(k, out.used[0]):
        out.order[i] = out.order[i + 1]


@once
def quote(out: Out, w: int, blame: int, a: float, b: float, x: float, y: float) -> None:
    """The queue and the numbers that the sentence of ``w`` quotes."""
    out.blame[w] = blame
    out.figures[w, 0], out.figures[w, 1], out.figures[w, 2], out.figures[w, 3] = a, b, x, y


@inner
def note_bound(out: Out, w: int, searches: int) -> None:
    """A search of a kind of which a cycle makes no more than ``searches`` was not made for ``w``."""
    out.figures[w, BOUND] = searches


@inner
def seat_out(out: Out, seats: Seats, w: int, members: int) -> None:
    """Where the members of ``w`` go."""
    at = take_seats(out, w, members)
    for i in range(members):
        out.pool_node[at + i], out.pool_device[at + i] = seats.node[i], seats.device[i]


@inner
def take_seats(out: Out, w: int, members: int) -> int:
    """A place in the pool for ``members`` of ``w``. Past its end the plan is void, and made again with a
    larger pool: until then the first places serve all, so that nobody reads or writes past it.
    """
    fits = out.used[1] + members <= out.pool_node.size
    out.first[w] = out.used[1] if fits else 0
    out.used[1] += members
    return out.first[w]


@inner
def recall(out: Out, seats: Seats, w: int) -> int:
    """The seats of ``w`` once more; returns how many."""
    for i in range(out.members[w]):
        seats.node[i] = out.pool_node[out.first[w] + i]
        seats.device[i] = out.pool_device[out.first[w] + i]
    return int(out.members[w])


@inner
def admit(world: World, w: int, c: int, members: int) -> None:
    """``w`` starts with the ``members`` that are seated."""
    fixed = not world.ranks.preemptible[world.work.priority[w]]
    charge(world, w, c, members, fixed)
    changed(world, HOLDING, c, world.work.queue[w])
    book_start(world, w, 1)
    q, book = world.work.queue[w], world.book
    until = world.rules.now + world.work.predicted_p90[w]
    book.begun[c, q] += members * world.work.need[GPUS, w]
    book.begun_until[c, q] = max(book.begun_until[c, q], until)
    decide(world.out, w, codes.ADMIT, codes.UNDECIDED, c, members)
    tell_start(world, w, c)
    seat_out(world.out, world.seats, w, members)
    note_shift(world, w, members)


@inner
def note_start(world: World, w: int) -> None:
    """``w`` starts on free room. Who steps back and starts again is there twice."""
    rounds, begun = world.book.rounds, world.out.begun
    if rounds[BEGUN] < begun.size:
        begun[rounds[BEGUN]] = w
        rounds[BEGUN] += 1


@inner
def note_shift(world: World, w: int, members: int) -> None:
    """``w`` starts or leaves with ``members``; if it accepts several classes, or starts with less than it
    asked for, it asks for something else from now on.
    """
    work = world.work
    several = work.wish.shape[0] > 1 and work.wish[1, w] >= 0
    if several or (members < work.most[w] and not work.elastic[w]):
        world.book.shifts[SINCE_DIVIDED] += 1


@inner
def tell_start(world: World, w: int, c: int) -> None:
    """Whether ``w``, which starts, lies inside its queue's nominal or borrows."""
    q = world.work.queue[w]
    held, nominal = world.book.held[c, q], world.quotas.nominal[c, q]
    world.out.reason[w] = codes.FITS_NOMINAL if held <= nominal else codes.BORROWS
    quote(world.out, w, q, held, nominal, world.division.fair[c, q], 0.0)


@inner
def promise(world: World, w: int, c: int, members: int) -> None:
    """``w`` has claimed room that is not free yet."""
    q = world.work.queue[w]
    charge(world, w, c, members, not world.ranks.preemptible[world.work.priority[w]])
    changed(world, HOLDING, c, q)
    book_start(world, w, 1)
    decide(world.out, w, codes.RESERVE, codes.AWAITS_VICTIMS, c, members)
    gpus = members * world.work.need[GPUS, w]
    quote(
        world.out,
        w,
        q,
        gpus,
        world.room.coming[c],
        world.book.held[c, q],
        world.division.fair[c, q],
    )
    seat_out(world.out, world.seats, w, members)
    for i in range(members):
        pledge(world.room, world.work, w, world.seats.node[i], world.seats.device[i])
    if world.book.promised[c] < 0:
        world.book.promised[c] = w


@inner
def note_coming(world: World, v: int, gpus: int) -> None:
    """Until ``gpus`` of ``v`` are gone they are coming and still count in its queues' limits."""
    c, q = world.work.gpu_class[v], world.work.queue[v]
    world.room.coming[c] += gpus
    while q > 0:
        world.book.leaving[c, q] += gpus
        q = world.tree.parent[q]


@once
def evict(world: World, v: int, reason: int) -> None:
    """``v`` leaves; ``release`` was or will be called for it. It may have given members up before."""
    out, c = world.out, world.work.gpu_class[v]
    left = out.members[v] if out.action[v] == codes.SHRINK else world.work.members[v]
    decide(out, v, codes.EVICT, reason, c, left)
    note_coming(world, v, left * world.work.need[GPUS, v])
    note_shift(world, v, world.work.members[v])


@once
def is_shrunk(world: World, v: int) -> bool:
    """Whether the line of ``v`` says already what it is left with."""
    left = world.work.members[v] - world.prey.given[v]
    return bool(world.out.action[v] == codes.SHRINK and world.out.members[v] == left)


@inner
def evict_for(world: World, hunt: Hunt, v: int, reason: int, leaves: Ints) -> None:
    """``v`` leaves for the workload of ``hunt``; quotes its queue below the common ancestor, of which
    ``leaves`` milli-GPU go.
    """
    evict(world, v, reason)
    world.out.lost[v] = world.prey.lost[v]
    world.prey.rated[0] += 1
    _quote_excess(world, hunt, v, leaves)


@inner
def evict_mover(world: World, hunt: Hunt, v: int) -> None:
    """``v``, which was to move, leaves for the workload of ``hunt`` instead. Its line stays in its place,
    before the one of whoever gets its room.
    """
    world.out.action[v], world.out.reason[v] = codes.EVICT, codes.PREEMPTED
    note_shift(world, v, world.work.members[v])
    leaves = np.zeros(world.tree.parent.size, np.int64)
    leaves[world.work.queue[v]] = world.work.members[v] * world.work.need[GPUS, v]
    _quote_excess(world, hunt, v, leaves)


@inner
def shrink_for(world: World, hunt: Hunt, v: int, leaves: Ints) -> None:
    """``v`` gives up the members noted in ``world.prey`` for the workload of ``hunt`` and goes on with
    the others where they sit.
    """
    work, out, prey = world.work, world.out, world.prey
    members = work.members[v] - prey.given[v]
    before = out.members[v] if out.action[v] == codes.SHRINK else work.members[v]
    gpus = (before - members) * work.need[GPUS, v]
    decide(out, v, codes.SHRINK, codes.SHRINKS, hunt.c, members)
    at, h = take_seats(out, v, members), world.holds.head[v]
    while h >= 0:
        for _ in range(world.holds.members[h] - prey.gone[h]):
            out.pool_node[at], out.pool_device[at] = world.holds.node[h], world.holds.device[h]
            at += 1
        h = world.holds.next[h]
    note_coming(world, v, gpus)
    reprice(world, v, members)
    _quote_excess(world, hunt, v, leaves)
    out.figures[v, 4] = prey.given[v]


@inner
def move_for(world: World, hunt: Hunt, v: int) -> None:
    """``v`` goes on, for the workload of ``hunt``, on the seats that it has taken already."""
    work, out, gpus = world.work, world.out, gpus_of(world.work, v)
    decide(out, v, codes.MOVE, codes.CONSOLIDATES, hunt.c, work.members[v])
    quote(out, v, work.queue[v], gpus, hunt.need, how_many(world.prey), 0.0)
    out.rival[v], out.lost[v], out.served[hunt.w] = hunt.w, world.prey.lost[v], True
    note_coming(world, v, gpus)


@inner
def _quote_excess(world: World, hunt: Hunt, v: int, leaves: Ints) -> None:
    """For whom ``v`` leaves, and how the queue below the common ancestor stood with all that ``leaves``."""
    out = world.out
    q = branch_of(world.tree, world.work.queue[v], world.work.queue[hunt.w])
    out.rival[v] = hunt.w
    out.served[hunt.w] = True
    held = world.book.held[hunt.c, q]
    quote(out, v, q, held + leaves[q], world.division.fair[hunt.c, q], held, hunt.need)
