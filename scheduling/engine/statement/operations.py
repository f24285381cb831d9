"""Decisions that change what is free and what holds it: a start, a claim, an eviction."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.node_room import claim, note_coming_free, pledge
from scheduling.engine.quota.standing import owes
from scheduling.engine.quota.usage import book_start, charge, note_leaving
from scheduling.engine.reasons.figures import PROMISE, START
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Tree, Work
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS
from scheduling.engine.statement.lines import HOLDING, changed, decide, seat_out


@inner
def clear_starts(queues: Queues) -> None:
    """Nothing has started, and nobody was promised room."""
    starts = queues.starts
    for c in range(starts.first_promised.size):
        starts.first_promised[c] = -1
        for q in range(starts.started.shape[1]):
            starts.started[c, q] = starts.promised[c, q] = 0
            starts.until_s[c, q] = 0.0


@inner
def note_started(queues: Queues, c: int, q: int, gpus: int) -> None:
    """``gpus`` more, or fewer, have started in queue ``q``."""
    queues.starts.started[c, q] += gpus


@inner
def note_promised(work: Work, room: NodeRoom, queues: Queues, w: int, c: int, gpus: int) -> None:
    """``gpus`` more, or fewer, are claimed by ``w``."""
    claim(room, c, gpus)
    if not work.claims[w]:
        queues.starts.promised[c, work.queue[w]] += gpus


@inner
def note_first_promised(queues: Queues, out: Decisions, c: int) -> None:
    """The first to whom room on class ``c`` is promised, once somebody has stepped back or starts."""
    promised = queues.starts.first_promised
    if promised[c] < 0 or out.reason[promised[c]] == codes.AWAITS_VICTIMS:
        return
    promised[c] = -1
    for k in range(out.size[0]):
        w = out.order[k]
        if out.gpu_class[w] == c and out.reason[w] == codes.AWAITS_VICTIMS:
            promised[c] = w
            return


@inner
def admit(world: Session, w: int, c: int, members: int) -> None:
    """``w`` starts with the ``members`` that are seated."""
    work, fixed = world.work, not world.ranks.preemptible[world.work.priority[w]]
    charge(world, w, c, members, fixed)
    changed(world.candidates, world.shapes, HOLDING, c, work.queue[w])
    book_start(world.tree, work, world.queues, world.users, w, 1)
    q, queues = work.queue[w], world.queues
    until = world.rules.now + work.ends_within[w]
    note_started(queues, c, q, members * work.need[GPUS, w])
    queues.starts.until_s[c, q] = max(queues.starts.until_s[c, q], until)
    decide(world.out, w, codes.ADMIT, codes.UNDECIDED, c, members)
    tell_start(world, w, c)
    seat_out(world.out, world.seats, w, members)
    note_shift(work, queues, w, members)


@inner
def note_shift(work: Work, queues: Queues, w: int, members: int) -> None:
    """``w`` starts, claims room or leaves with ``members``; if it accepts several classes, or starts with
    less than it asked for, it asks for something else from now on.
    """
    several = work.wish.shape[0] > 1 and work.wish[1, w] >= 0
    if several or (members < work.most[w] and not work.elastic[w]):
        queues.redivision.changed_asks += 1


@inner
def tell_start(world: Session, w: int, c: int) -> None:
    """Whether ``w``, which starts, lies inside its queue's nominal or borrows."""
    q = world.work.queue[w]
    fits = owes(world.tree, world.quotas, world.queues, q, -1, c, 0)
    world.out.reason[w] = codes.FITS_NOMINAL if fits else codes.BORROWS
    figures = world.out.figures
    world.out.blame[w] = q
    figures[w, START.holds] = world.queues.usage.gpus[c, q]
    figures[w, START.nominal] = world.quotas.nominal[c, q]
    figures[w, START.fair_share] = world.division.fair[c, q]


@inner
def promise(world: Session, w: int, c: int, members: int) -> None:
    """``w`` has claimed room that is not free yet."""
    work, queues, out = world.work, world.queues, world.out
    q = work.queue[w]
    decide(out, w, codes.RESERVE, codes.AWAITS_VICTIMS, c, members)
    seat_out(out, world.seats, w, members)
    charge_promise(world, w, 1, True)
    changed(world.candidates, world.shapes, HOLDING, c, q)
    figures = out.figures
    out.blame[w] = q
    figures[w, PROMISE.needs] = members * work.need[GPUS, w]
    figures[w, PROMISE.coming] = world.room.coming[c]
    figures[w, PROMISE.holds] = queues.usage.gpus[c, q]
    figures[w, PROMISE.fair_share] = world.division.fair[c, q]
    note_shift(work, queues, w, members)
    if queues.starts.first_promised[c] < 0:
        queues.starts.first_promised[c] = w


@inner
def charge_promise(world: Session, w: int, sign: int, anew: bool) -> None:
    """Reckon with the claim of ``w`` (1), or with its seats alone (-1); ``anew`` with what is free by now."""
    out, pool = world.out, world.out.pool
    c, members = out.gpu_class[w], sign * out.members[w]
    charge(world, w, c, members, not world.ranks.preemptible[world.work.priority[w]])
    book_start(world.tree, world.work, world.queues, world.users, w, sign)
    gpus = members * world.work.need[GPUS, w]
    note_promised(world.work, world.room, world.queues, w, c, gpus)
    for i in range(pool.first[w], pool.first[w] + out.members[w]):
        pledge(world.room, world.work, pool, w, i, sign, anew)


@inner
def note_coming(tree: Tree, work: Work, room: NodeRoom, queues: Queues, v: int, gpus: int) -> None:
    """Until ``gpus`` of ``v`` are gone they are coming and still count in its queues' limits."""
    c, q = work.gpu_class[v], work.queue[v]
    note_coming_free(room, c, gpus)
    note_leaving(tree, queues, c, q, gpus)


@inner
def evict(world: Session, v: int, reason: int) -> None:
    """``v`` leaves; ``release`` was or will be called for it. It may have given members up before."""
    tree, work, room, queues = world.tree, world.work, world.room, world.queues
    out, c = world.out, work.gpu_class[v]
    left = out.members[v] if out.action[v] == codes.SHRINK else work.members[v]
    decide(out, v, codes.EVICT, reason, c, left)
    note_coming(tree, work, room, queues, v, left * work.need[GPUS, v])
    note_shift(work, queues, v, work.members[v])
