"""Reads a frame into the cycle's tables: free room, what queues hold and ask for, who may start."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.arrays import GPUS, PENDING
from scheduling.engine.blame import never
from scheduling.engine.compiled import inner, once
from scheduling.engine.fitness import fits_empty, limit_too_low
from scheduling.engine.prey import gpus_of
from scheduling.engine.record import note_leaving
from scheduling.engine.seating import leave, occupy
from scheduling.engine.standing import dominant_ratio
from scheduling.engine.world import World


@once
def clear(world: World) -> None:
    """Empty tables, all nodes free. Loops, because assigning arrays to slices compiles slowly."""
    _clear_queues(world)
    _clear_out(world)
    room, size = world.room, world.nodes.size
    for n in range(size.shape[1]):
        for r in range(3):
            room.now[r, n] = room.later[r, n] = size[r, n]
            room.pledged[r, n] = 0
        for d in range(room.shared_now.shape[1]):
            room.shared_now[n, d] = room.shared_later[n, d] = 0
    for c in range(room.newest.size):
        room.newest[c] = -1
    room.tick[0] += 1
    room.tick[1] = room.tick[0]


@inner
def _clear_queues(world: World) -> None:
    book = world.book
    for q in range(book.ratio.size):
        book.ratio[q] = 0.0
        book.budget[q] = world.tree.budget[q]
        for c in range(book.holder.size):
            book.held[c, q] = book.fixed[c, q] = book.asked[c, q] = 0
            book.leaving[c, q] = 0
            book.turn[c, q] = -1
    for c in range(book.holder.size):
        book.holder[c] = book.promised[c] = -1
        book.supply[c] = world.nodes.capacity[c]
        world.room.coming[c] = 0
    for pair in range(book.by_user.size):
        book.by_user[pair] = 0


@inner
def _clear_out(world: World) -> None:
    """Only of those who wait or run: other slots are never looked at."""
    line, out = world.line, world.out
    out.used[0] = out.used[1] = 0
    for k in range(line.count[0]):
        _clear_slot(world, line.item[k])
    for k in range(line.count[2]):
        _clear_slot(world, line.running[k])


@inner
def _clear_slot(world: World, w: int) -> None:
    out = world.out
    out.action[w] = out.reason[w] = codes.UNDECIDED
    out.rival[w] = out.blame[w] = -1
    out.members[w] = 0
    out.noted[w] = False
    out.until[w] = out.lost[w] = 0.0
    for i in range(out.figures.shape[1]):
        out.figures[w, i] = 0.0
    world.prey.chosen[w] = False


@inner
def read_running(world: World) -> None:
    """Who holds what. Work that leaves holds its room now, not later, and no quota any more."""
    work, book, holds, tree = world.work, world.book, world.holds, world.tree
    for k in range(world.line.count[2]):
        w = world.line.running[k]
        h = holds.head[w]
        while h >= 0:
            occupy(world.room, work, w, holds.node[h], holds.device[h], holds.members[h])
            if work.leaving[w]:
                leave(world.room, work, w, holds.node[h], holds.device[h], holds.members[h])
            h = holds.next[h]
        c, gpus = work.gpu_class[w], gpus_of(work, w)
        if work.leaving[w]:
            note_leaving(world, w)
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
def read_waiting(world: World) -> None:
    """Settle those that cannot start whatever happens, and count what the others ask for."""
    work, line = world.work, world.line
    for k in range(line.count[0]):
        w = line.item[k]
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
    for k in range(line.count[2]):
        w = line.running[k]
        if work.leaving[w] and work.queue[w] > 0:
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
def note_the_settled(world: World) -> None:
    """Lines for those settled beforehand come last."""
    out, line = world.out, world.line
    for k in range(line.count[0]):
        w = line.item[k]
        if out.action[w] == codes.WAIT and not out.noted[w]:
            out.order[out.used[0]] = w
            out.used[0] += 1
