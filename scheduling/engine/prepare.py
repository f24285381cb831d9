"""Reads a frame into the cycle's tables: free room, what queues hold and ask for, who may start."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.arrays import GPUS, RUNNING, Room
from scheduling.engine.compiled import inner, once
from scheduling.engine.limits import find_limits
from scheduling.engine.record import undecide
from scheduling.engine.seating import ONE, begin_plan, leave, occupy, touch, touch_all
from scheduling.engine.standing import dominant_ratio, note_kept
from scheduling.engine.world import World


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
def clear_queues(world: World) -> None:
    """Nothing is held or asked for; users start with what they held of late."""
    book = world.book
    for q in range(book.ratio.size):
        book.ratio[q] = 0.0
        book.budget[q] = world.tree.budget[q]
        book.running[q] = book.queued[q] = 0
    for c in range(book.holder.size):
        for q in range(book.ratio.size):
            book.held[c, q] = book.fixed[c, q] = 0
            book.asked[c, q] = book.extra[c, q]
            book.leaving[c, q] = book.charged[c, q] = 0
            book.begun[c, q], book.begun_until[c, q] = 0, 0.0
            book.turn[c, q] = book.tame[c, q] = -1
        book.holder[c] = book.promised[c] = -1
        book.supply[c] = world.nodes.capacity[c]
        world.room.coming[c] = 0
    find_limits(world)
    usage, by_user, strength = world.users.usage, book.by_user, world.rules.user_history
    for pair in range(by_user.size):
        by_user[pair] = int(usage[pair] * strength + 0.5)
    if book.limited[0]:
        for pair in range(by_user.size):
            book.user_running[pair] = book.user_gpus[pair] = 0
            book.user_queued[pair] = book.user_asks[pair] = 0


@inner
def clear_out(world: World) -> None:
    """Nothing is decided. Only lines of the plan before are not empty."""
    out = world.out
    order, like, served, stepped_back = out.order, out.like, out.served, out.stepped_back
    action, reason, until, noted = out.action, out.reason, out.until, out.noted
    lost, chosen = out.lost, world.prey.chosen
    for k in range(out.used[0]):
        w = order[k]
        if like[w] >= 0:
            action[w] = reason[w] = like[w] = codes.UNDECIDED
            until[w], noted[w] = 0.0, False
        else:
            undecide(out, w)
        served[w] = stepped_back[w] = chosen[w] = False
        lost[w] = 0.0
    out.used[0] = out.used[1] = 0


@inner
def weigh(world: World) -> None:
    """Ratios of the queues and free GPUs of the classes, once the division is known."""
    room, nodes = world.room, world.nodes
    find_ratios(world)
    _note_waits(world)
    note_kept(world)
    for c in range(room.open.size):
        room.open[c] = 0
        for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
            room.open[c] += room.kept_open[nodes.of_class[i]]


@once
def _note_waits(world: World) -> None:
    """Since when somebody waits in each queue and all below it."""
    since, oldest, parent = world.book.waits_since, world.line.oldest, world.tree.parent
    for q in range(parent.size):
        since[q] = oldest[q]
    for q in range(parent.size - 1, 0, -1):
        since[parent[q]] = min(since[parent[q]], since[q])


@inner
def find_ratios(world: World) -> None:
    """How far each queue is from its share, by which they take turns, and how large that is."""
    book, rate, fair = world.book, world.nodes.rate, world.division.fair
    for q in range(world.tree.parent.size):
        book.ratio[q] = dominant_ratio(rate, book, world.division, q)
        size = 0.0
        for c in range(rate.size):
            size += fair[c, q] * rate[c]
        book.fair_size[q] = int(size + 0.5)


@inner
def note_the_settled(world: World) -> None:
    """Lines for those settled beforehand come last."""
    out, line = world.out, world.line
    item, action, noted = line.item, out.action, out.noted
    for k in range(line.count[0]):
        w = item[k]
        if action[w] == codes.WAIT and not noted[w]:
            out.order[out.used[0]] = w
            out.used[0] += 1
