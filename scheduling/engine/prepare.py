"""Reads a frame into the cycle's tables: free room, what queues hold and ask for, who may start."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.arrays import GPUS, PENDING, RUNNING, Ints
from scheduling.engine.blame import never
from scheduling.engine.compiled import inner
from scheduling.engine.eviction import gpus_of
from scheduling.engine.fitness import fits_empty, limit_too_low
from scheduling.engine.seating import leave, occupy
from scheduling.engine.standing import dominant_ratio
from scheduling.engine.world import World


@inner
def clear(world: World) -> None:
    """Empty tables, all nodes free."""
    book, out, room, nodes = world.book, world.out, world.room, world.nodes
    for table in (book.held, book.fixed, book.asked):
        table[:] = 0
    book.by_user[:] = 0
    book.ratio[:] = 0.0
    book.turn[:] = -1
    book.holder[:] = -1
    book.spent[:] = 0
    book.budget[:] = world.tree.budget
    book.supply[:] = nodes.capacity
    out.used[:] = 0
    out.action[:] = codes.UNDECIDED
    out.reason[:] = codes.UNDECIDED
    out.rival[:] = -1
    out.members[:] = 0
    out.until[:] = 0.0
    out.lost[:] = 0.0
    out.figures[:] = 0.0
    room.now[:] = nodes.size
    room.later[:] = nodes.size
    room.shared_now[:] = 0
    room.shared_later[:] = 0
    room.coming[:] = 0


@inner
def read_running(world: World) -> None:
    """Who holds what. Work that leaves holds its room now, not later, and no quota any more."""
    work, book, holds, tree = world.work, world.book, world.holds, world.tree
    for w in range(work.phase.size):
        if work.phase[w] != RUNNING:
            continue
        h = holds.head[w]
        while h >= 0:
            occupy(world.room, work, w, holds.node[h], holds.device[h], holds.members[h])
            if work.leaving[w]:
                leave(world.room, work, w, holds.node[h], holds.device[h], holds.members[h])
            h = holds.next[h]
        c, gpus = work.gpu_class[w], gpus_of(work, w)
        if work.leaving[w]:
            world.room.coming[c] += gpus
            continue
        q = work.queue[w]
        if q < 0:
            book.supply[c] = max(0, book.supply[c] - gpus)
            continue
        wants = max(work.members[w], work.most[w]) if work.elastic[w] else work.members[w]
        book.asked[c, q] += wants * work.need[GPUS, w]
        book.by_user[work.user[w]] += gpus
        fixed = work.priority[w] >= 0 and not world.ranks.preemptible[work.priority[w]]
        while q >= 0:
            book.held[c, q] += gpus
            if fixed:
                book.fixed[c, q] += gpus
            q = tree.parent[q]


@inner
def read_waiting(world: World, items: Ints) -> None:
    """Settle those that cannot start whatever happens, and count what the others ask for."""
    work = world.work
    for w in items:
        if work.phase[w] != PENDING:
            continue
        q = work.queue[w]
        reason = codes.UNDECIDED
        if q < 0:
            reason = codes.MISROUTED
        elif work.wish[0, w] < 0:
            reason = codes.NO_SUCH_CLASS
        elif work.held[w] or world.tree.stop[q] > 0:
            reason = codes.HELD
        else:
            _ask(world, w)
        if reason != codes.UNDECIDED:
            world.out.action[w], world.out.reason[w] = codes.WAIT, reason
            world.out.gpu_class[w], world.out.blame[w] = work.wish[0, w], q
    for w in range(work.phase.size):
        if work.phase[w] == RUNNING and work.leaving[w] and work.queue[w] > 0:
            _ask(world, w)


@inner
def _ask(world: World, w: int) -> None:
    """Add what ``w`` asks for to its queue in each class it may run on; it may fit none."""
    work, asked = world.work, 0
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        if limit_too_low(world, w, c) < 0 and fits_empty(world, w, c):
            world.book.asked[c, work.queue[w]] += work.most[w] * work.need[GPUS, w]
            asked += 1
    if asked == 0 and work.phase[w] == PENDING:
        never(world, w, work.wish[0, w], limit_too_low(world, w, work.wish[0, w]))


@inner
def weigh(world: World) -> None:
    """Ratios of the queues and free GPUs of the classes, once the division is known."""
    room, nodes, book = world.room, world.nodes, world.book
    for q in range(world.tree.parent.size):
        book.ratio[q] = dominant_ratio(nodes.rate, book, world.division, q)
    for c in range(room.open.size):
        room.open[c] = 0
        for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
            n = nodes.of_class[i]
            room.open[c] += max(0, room.now[GPUS, n])
            for d in range(room.shared_now.shape[1]):
                used = room.shared_now[n, d]
                room.open[c] += max(0, 1000 - used) if used > 0 else 0


@inner
def note_the_settled(world: World, items: Ints) -> None:
    """Lines for those settled beforehand come last."""
    out = world.out
    noted = np.zeros(world.work.phase.size, np.bool_)
    for w in out.order[: out.used[0]]:
        noted[w] = True
    for w in items:
        if not noted[w] and out.action[w] == codes.WAIT:
            out.order[out.used[0]] = w
            out.used[0] += 1
