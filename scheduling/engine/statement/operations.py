"""Decisions that change what is free and who holds what: a start, a claim, an eviction."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.placement.node_room import note_coming_free, pledge
from scheduling.engine.quota.usage import book_start, charge, note_leaving
from scheduling.engine.reasons.figures import PROMISE, START
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS
from scheduling.engine.statement.changed import HOLDING, changed
from scheduling.engine.statement.lines import decide, seat_out


@inner
def clear_starts(world: Session) -> None:
    """Nothing has started, and nobody was promised room."""
    starts = world.queues.starts
    for c in range(starts.first_promised.size):
        starts.first_promised[c] = -1
        for q in range(starts.started.shape[1]):
            starts.started[c, q], starts.until_s[c, q] = 0, 0.0


@inner
def note_started(world: Session, c: int, q: int, gpus: int) -> None:
    """``gpus`` more, or fewer, have started in queue ``q``."""
    world.queues.starts.started[c, q] += gpus


@inner
def admit(world: Session, w: int, c: int, members: int) -> None:
    """``w`` starts with the ``members`` that are seated."""
    fixed = not world.ranks.preemptible[world.work.priority[w]]
    charge(world, w, c, members, fixed)
    changed(world, HOLDING, c, world.work.queue[w])
    book_start(world, w, 1)
    q, queues = world.work.queue[w], world.queues
    until = world.rules.now + world.work.ends_within[w]
    note_started(world, c, q, members * world.work.need[GPUS, w])
    queues.starts.until_s[c, q] = max(queues.starts.until_s[c, q], until)
    decide(world.out, w, codes.ADMIT, codes.UNDECIDED, c, members)
    tell_start(world, w, c)
    seat_out(world.out, world.seats, w, members)
    note_shift(world, w, members)


@inner
def note_shift(world: Session, w: int, members: int) -> None:
    """``w`` starts or leaves with ``members``; if it accepts several classes, or starts with less than it
    asked for, it asks for something else from now on.
    """
    work = world.work
    several = work.wish.shape[0] > 1 and work.wish[1, w] >= 0
    if several or (members < work.most[w] and not work.elastic[w]):
        world.queues.redivision.changed_asks += 1


@inner
def tell_start(world: Session, w: int, c: int) -> None:
    """Whether ``w``, which starts, lies inside its queue's nominal or borrows."""
    q = world.work.queue[w]
    held, nominal = world.queues.usage.held[c, q], world.quotas.nominal[c, q]
    world.out.reason[w] = codes.FITS_NOMINAL if held <= nominal else codes.BORROWS
    figures = world.out.figures
    world.out.blame[w] = q
    figures[w, START.holds], figures[w, START.nominal] = held, nominal
    figures[w, START.fair_share] = world.division.fair[c, q]


@inner
def promise(world: Session, w: int, c: int, members: int) -> None:
    """``w`` has claimed room that is not free yet."""
    q = world.work.queue[w]
    charge(world, w, c, members, not world.ranks.preemptible[world.work.priority[w]])
    changed(world, HOLDING, c, q)
    book_start(world, w, 1)
    decide(world.out, w, codes.RESERVE, codes.AWAITS_VICTIMS, c, members)
    figures = world.out.figures
    world.out.blame[w] = q
    figures[w, PROMISE.needs] = members * world.work.need[GPUS, w]
    figures[w, PROMISE.coming] = world.room.coming[c]
    figures[w, PROMISE.holds] = world.queues.usage.held[c, q]
    figures[w, PROMISE.fair_share] = world.division.fair[c, q]
    seat_out(world.out, world.seats, w, members)
    for i in range(members):
        pledge(world.room, world.work, w, world.seats.node[i], world.seats.device[i])
    if world.queues.starts.first_promised[c] < 0:
        world.queues.starts.first_promised[c] = w


@inner
def note_coming(world: Session, v: int, gpus: int) -> None:
    """Until ``gpus`` of ``v`` are gone they are coming and still count in its queues' limits."""
    c, q = world.work.gpu_class[v], world.work.queue[v]
    note_coming_free(world.room, c, gpus)
    note_leaving(world, c, q, gpus)


@once
def evict(world: Session, v: int, reason: int) -> None:
    """``v`` leaves; ``release`` was or will be called for it. It may have given members up before."""
    out, c = world.out, world.work.gpu_class[v]
    left = out.members[v] if out.action[v] == codes.SHRINK else world.work.members[v]
    decide(out, v, codes.EVICT, reason, c, left)
    note_coming(world, v, left * world.work.need[GPUS, v])
    note_shift(world, v, world.work.members[v])
