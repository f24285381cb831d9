"""Writing decisions down."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.arrays import GPUS, Out, Seats
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import Hunt
from scheduling.engine.limits import book_start
from scheduling.engine.prey import gpus_of
from scheduling.engine.seating import pledge
from scheduling.engine.standing import charge, common_ancestor
from scheduling.engine.world import World


@inner
def decide(out: Out, w: int, action: int, reason: int, c: int, members: int) -> None:
    """One line of the plan."""
    out.action[w], out.reason[w] = action, reason
    out.gpu_class[w], out.members[w] = c, members
    out.noted[w] = True
    out.order[out.used[0]] = w
    out.used[0] += 1


@once
def quote(out: Out, w: int, blame: int, a: float, b: float, x: float, y: float) -> None:
    """The queue and the numbers that the sentence of ``w`` quotes."""
    out.blame[w] = blame
    out.figures[w, 0], out.figures[w, 1], out.figures[w, 2], out.figures[w, 3] = a, b, x, y


@inner
def seat_out(out: Out, seats: Seats, w: int, members: int) -> None:
    """Where the members of ``w`` go."""
    out.first[w] = out.used[1]
    for i in range(members):
        out.pool_node[out.used[1]] = seats.node[i]
        out.pool_device[out.used[1]] = seats.device[i]
        out.used[1] += 1


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
    q = world.work.queue[w]
    fixed = not world.ranks.preemptible[world.work.priority[w]]
    charge(world, w, c, members, fixed)
    book_start(world, w, 1)
    held, nominal = world.book.held[c, q], world.quotas.nominal[c, q]
    reason = codes.FITS_NOMINAL if held <= nominal else codes.BORROWS
    decide(world.out, w, codes.ADMIT, reason, c, members)
    quote(world.out, w, q, held, nominal, world.division.fair[c, q], 0.0)
    seat_out(world.out, world.seats, w, members)


@inner
def promise(world: World, w: int, c: int, members: int) -> None:
    """``w`` has claimed room that is not free yet."""
    q = world.work.queue[w]
    charge(world, w, c, members, not world.ranks.preemptible[world.work.priority[w]])
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
def note_leaving(world: World, v: int) -> None:
    """Until ``v`` is gone its GPUs are coming and still count in its queues' limits."""
    c, q, gpus = world.work.gpu_class[v], world.work.queue[v], gpus_of(world.work, v)
    world.room.coming[c] += gpus
    while q > 0:
        world.book.leaving[c, q] += gpus
        q = world.tree.parent[q]


@once
def evict(world: World, v: int, reason: int) -> None:
    """``v`` leaves; ``release`` was or will be called for it."""
    c = world.work.gpu_class[v]
    decide(world.out, v, codes.EVICT, reason, c, world.work.members[v])
    note_leaving(world, v)


@inner
def evict_for(world: World, hunt: Hunt, v: int, reason: int) -> None:
    """``v`` leaves for the workload of ``hunt``; quotes its queue below the common ancestor."""
    evict(world, v, reason)
    tree, out = world.tree, world.out
    q = world.work.queue[v]
    meet = common_ancestor(tree, q, world.work.queue[hunt.w])
    while q != meet and tree.parent[q] != meet:
        q = tree.parent[q]
    out.rival[v] = hunt.w
    out.lost[v] = world.prey.lost[v]
    held = world.book.held[hunt.c, q]
    quote(out, v, q, held + gpus_of(world.work, v), world.division.fair[hunt.c, q], held, hunt.need)
