"""Making room by merit: who is due, or for throughput who waits, evicts what is well ahead or far longer.

Nobody leaves within their min run time, above their priority's head, past what the subtree may still evict
or once they were evicted as often as the policy allows. They leave soon after a checkpoint or their start,
so little work is lost, and one large victim that has run long rather than several small ones.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission import need_of, passes_nominal, share_allows, start_or_promise
from scheduling.engine.arrays import GPUS, LATER, RUNNING, UNLIMITED
from scheduling.engine.changed import EVERY, ROOM, changed
from scheduling.engine.compiled import inner, once
from scheduling.engine.eviction import (
    RECLAIM,
    STRICT,
    Hunt,
    had_risen,
    in_budget,
    protected_until,
)
from scheduling.engine.line import RISEN
from scheduling.engine.memo import EPOCH
from scheduling.engine.merit import RETRY_S, expected_of, lead_of
from scheduling.engine.placement import place
from scheduling.engine.prey import END, FIRST, core_of, gpus_of
from scheduling.engine.prospects import note_loss
from scheduling.engine.record import evict
from scheduling.engine.rooming import see_prey
from scheduling.engine.seating import may_use
from scheduling.engine.standing import PLAIN, inside_nominal, is_worn
from scheduling.engine.statement import begin, let_go, undo_all
from scheduling.engine.world import World

MOST_HUNTS = 64
"""In a cycle; this bounds its time."""
PATIENCE_S = 30.0
"""For throughput who waits less evicts nobody."""
AHEAD_S, AHEAD_FRESH_S = 7200.0, 300.0
"""Who is further ahead of its own quota may leave for who is due, as soon after a checkpoint or start."""
TIMES_LONGER, LONGER_FRESH_S = 10.0, 120.0
"""Who expects so many times the work may leave, as soon after one."""
PER_EVICTION, PER_LATE, PER_GPU_FREED = 900.0, 20_000.0, 900.0
"""GPU-seconds that an eviction is weighed with beside its lost work, one of a workload that is not AHEAD_S
ahead in addition, and what each GPU that it frees beyond need is worth.
"""


SILENT_S = 7200.0
"""Of work without a checkpoint for longer none is to be waited for: it may leave at any time."""


@inner
def gives_way(world: World, w: int, c: int) -> bool:
    """Others leave for ``w`` on class ``c``, by merit."""
    q, need = world.work.queue[w], need_of(world, w)
    if (
        not _may_hunt(world, w)
        or _fails_like_another(world, c, need)
        or passes_nominal(world, w, c)
    ):
        return False
    see_prey(world)
    hunt = Hunt(w, c, RECLAIM, world.tree.top[q], False, STRICT, need, False, PLAIN)
    world.merit.tried[0] += 1
    if _price_all(world, hunt) and _choose(world, hunt):
        return _carry_out(world, hunt)
    return False


@inner
def _fails_like_another(world: World, c: int, need: int) -> bool:
    """Whether one that asked for no more was refused before: it had more of them to choose from, since the
    due, and who waits patiently, are asked in order of expected work.
    """
    merit = world.merit
    return bool(merit.failed_at[c] == world.memo.now[EPOCH] and need >= merit.failed[c])


@inner
def _note_failure(world: World, hunt: Hunt) -> None:
    """No GPUs would do for ``hunt.w``, wherever it may run."""
    merit, work, now = world.merit, world.work, world.memo.now[EPOCH]
    if work.where[hunt.w] >= 0 or world.tree.top[0] != hunt.top:
        return
    least = merit.failed[hunt.c] if merit.failed_at[hunt.c] == now else hunt.need
    merit.failed[hunt.c], merit.failed_at[hunt.c] = min(least, hunt.need), now


@once
def _may_hunt(world: World, w: int) -> bool:
    """By what it waits for; and whether any hunt is left. Who may, asks again before long."""
    work, merit, now, q = world.work, world.merit, world.rules.now, world.work.queue[w]
    calm = max(work.submitted[w], work.evicted[w]) + PATIENCE_S
    if world.tree.sharing[q] == codes.PROMISE:
        calm = work.evicted[w] + PATIENCE_S
        if not merit.due[w]:
            return False
    if now < calm:
        merit.next[0] = min(merit.next[0], calm)
        return False
    merit.next[0] = min(merit.next[0], now + RETRY_S)
    return bool(merit.left[world.tree.top[q]] > 0.0 and merit.tried[0] < MOST_HUNTS)


@inner
def _price_all(world: World, hunt: Hunt) -> bool:
    """What each eviction would be weighed with, infinite where it may not be; whether any may."""
    line, price, any_may = world.line, world.merit.price, False
    for k in range(line.count[2]):
        v = line.running[k]
        price[v] = np.inf
        if _may_leave(world, hunt, v):
            price[v] = _price(world, hunt, v)
            any_may = True
    return any_may


@inner
def _may_leave(world: World, hunt: Hunt, v: int) -> bool:
    work, prey, tree, now = world.work, world.prey, world.tree, world.rules.now
    if work.gpu_class[v] != hunt.c or work.queue[v] < 0 or tree.top[work.queue[v]] != hunt.top:
        return False
    listed = prey.listing[v] == prey.listings[0] and not prey.chosen[v] and prey.given[v] == 0
    if not listed or world.out.action[v] != codes.UNDECIDED or work.leaving[v]:
        return False
    if is_worn(world, v) or work.started[v] >= now or not _is_worth_it(world, hunt, v):
        return False
    value, rank = world.ranks.value, work.priority
    if value[rank[v]] > value[rank[hunt.w]] or had_risen(world, v):
        return False
    return bool(
        now >= protected_until(world, hunt, v) and in_budget(world, work.queue[v], core_of(work, v))
    )


@inner
def _is_worth_it(world: World, hunt: Hunt, v: int) -> bool:
    """It is well ahead of its own quota, or expects far more work, and little of it is lost."""
    work, now = world.work, world.rules.now
    lost_s = now - max(work.started[v], work.checkpointed[v])
    silent = lost_s > SILENT_S
    if lost_s <= LONGER_FRESH_S or silent:
        world.merit.expected[v] = expected_of(world, v)
        if TIMES_LONGER * world.merit.expected[hunt.w] < world.merit.expected[v] < np.inf:
            return True
    promises = world.tree.sharing[work.queue[hunt.w]] == codes.PROMISE
    fresh = lost_s <= AHEAD_FRESH_S or silent
    return bool(promises and fresh and lead_of(work, v, now) > AHEAD_S)


@inner
def _price(world: World, hunt: Hunt, v: int) -> float:
    price = PER_EVICTION + world.prey.lost[v]
    promises = world.tree.sharing[world.work.queue[hunt.w]] == codes.PROMISE
    if promises and lead_of(world.work, v, world.rules.now) < AHEAD_S:
        price += PER_LATE
    return price


@inner
def _choose(world: World, hunt: Hunt) -> bool:
    """The cheapest victims whose seats and what is free take ``hunt.w``; they are in the log, and its seats
    taken. On one node if that could hold it, else on as many wholly freed as it needs.
    """
    work, w = world.work, hunt.w
    size = _largest_node(world, hunt)
    many = (
        _cheapest_on_one(world, hunt) if hunt.need <= size else _cheapest_nodes(world, hunt, size)
    )
    if many == 0:
        _note_failure(world, hunt)
        return False
    begin(world)
    for i in range(many):
        let_go(world, world.merit.best[i])
    capped = world.book.spent[0] > world.rules.eviction_cap * hunt.need
    lawful = not capped and share_allows(world, w, hunt.c, hunt.need, UNLIMITED)
    if lawful and place(world, w, hunt.c, work.least[w], LATER) > 0:
        return True
    undo_all(world)
    return False


@once
def _largest_node(world: World, hunt: Hunt) -> int:
    nodes, size = world.nodes, 0
    for i in range(nodes.class_start[hunt.c], nodes.class_start[hunt.c + 1]):
        size = max(size, nodes.size[GPUS, nodes.of_class[i]])
    return size


@inner
def _given_by(world: World, h: int) -> int:
    """Milli-GPU that hold ``h`` would give back, 0 if its owner may not leave."""
    v = world.room.owner[h]
    if world.work.phase[v] != RUNNING or world.merit.price[v] == np.inf:
        return 0
    return int(world.holds.members[h] * world.work.need[GPUS, v])


@inner
def _could_free(world: World, w: int, n: int) -> int:
    """Milli-GPU that would be free on node ``n`` with all gone who may."""
    if not may_use(world.room, world.work, w, n):
        return -1
    free, h = world.room.later[GPUS, n], world.room.first[n]
    while h >= 0:
        free += _given_by(world, h)
        h = world.room.after[h]
    return int(free)


@once
def _cheapest_on_one(world: World, hunt: Hunt) -> int:
    """Puts the victims on the node of least price into ``merit.best``; returns how many."""
    nodes, least, where = world.nodes, np.inf, -1
    for i in range(nodes.class_start[hunt.c], nodes.class_start[hunt.c + 1]):
        n = nodes.of_class[i]
        if _could_free(world, hunt.w, n) < hunt.need:
            continue
        price = _take_from(world, hunt, n)
        if price < least:
            least, where = price, n
    if where < 0:
        return 0
    _take_from(world, hunt, where)
    return int(world.merit.best[world.merit.best.size - 1])


@inner
def _take_from(world: World, hunt: Hunt, n: int) -> float:
    """The cheapest single victim that is enough, else the cheapest by GPU until they are, into
    ``merit.best``, their number last; the price of all.
    """
    merit, room, last = world.merit, world.room, world.merit.best.size - 1
    free = room.later[GPUS, n]
    one, price = _single(world, hunt, n)
    if one >= 0:
        merit.best[0], merit.best[last] = one, 1
        return price
    merit.tried[1] += 1
    many, price = 0, 0.0
    while free < hunt.need:
        h = _cheapest_hold(world, n)
        v = room.owner[h]
        merit.taken[v], merit.best[many] = merit.tried[1], v
        price += merit.price[v]
        free += _given_by(world, h)
        many += 1
    merit.best[last] = many
    return price


@inner
def _single(world: World, hunt: Hunt, n: int) -> tuple[int, float]:
    merit, room, best, least = world.merit, world.room, -1, np.inf
    h = room.first[n]
    while h >= 0:
        gives, v = _given_by(world, h), room.owner[h]
        if gives > 0 and room.later[GPUS, n] + gives >= hunt.need:
            beyond = (gpus_of(world.work, v) - hunt.need) / 1000.0
            price = merit.price[v] - PER_GPU_FREED * beyond
            if price < least or (price == least and world.work.tie[v] < world.work.tie[best]):
                best, least = v, price
        h = room.after[h]
    return best, least


@inner
def _cheapest_hold(world: World, n: int) -> int:
    """Of those not taken yet the one that costs least for each GPU it gives."""
    merit, room, best, least = world.merit, world.room, -1, np.inf
    h = room.first[n]
    while h >= 0:
        gives, v = _given_by(world, h), room.owner[h]
        if gives > 0 and merit.taken[v] != merit.tried[1]:
            rate = merit.price[v] / gives
            earlier = best >= 0 and world.work.tie[v] < world.work.tie[room.owner[best]]
            if rate < least or (rate == least and earlier):
                best, least = h, rate
        h = room.after[h]
    return best


@inner
def _cheapest_nodes(world: World, hunt: Hunt, size: int) -> int:
    """All who may leave the nodes that cost least to free wholly, as many as the gang needs."""
    merit, work, w = world.merit, world.work, hunt.w
    fits = size // work.need[GPUS, w]
    if fits == 0:
        return 0
    _price_nodes(world, hunt, fits * work.need[GPUS, w])
    merit.tried[1] += 1
    many = 0
    for _ in range(-(-work.least[w] // fits)):
        n = _cheapest_node(world, hunt.c)
        if n < 0:
            return 0
        merit.clearing[n] = np.inf
        many = _take_all(world, n, many)
    return many


@inner
def _price_nodes(world: World, hunt: Hunt, gpus: int) -> None:
    nodes, clearing = world.nodes, world.merit.clearing
    for i in range(nodes.class_start[hunt.c], nodes.class_start[hunt.c + 1]):
        n = nodes.of_class[i]
        enough = _could_free(world, hunt.w, n) >= gpus
        clearing[n] = _price_of_node(world, n) if enough else np.inf


@inner
def _cheapest_node(world: World, c: int) -> int:
    """-1 if none can be freed."""
    nodes, clearing, best, least = world.nodes, world.merit.clearing, -1, np.inf
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        n = nodes.of_class[i]
        if clearing[n] < least:
            best, least = n, clearing[n]
    return best


@inner
def _take_all(world: World, n: int, many: int) -> int:
    """Put who may leave node ``n`` behind the first ``many`` of ``merit.best``; returns how many."""
    merit, room, h = world.merit, world.room, world.room.first[n]
    while h >= 0:
        v = room.owner[h]
        if _given_by(world, h) > 0 and merit.taken[v] != merit.tried[1]:
            merit.taken[v], merit.best[many] = merit.tried[1], v
            many += 1
        h = room.after[h]
    return many


@inner
def _price_of_node(world: World, n: int) -> float:
    """A gang across nodes counts in each of them by its part."""
    price, h = 0.0, world.room.first[n]
    while h >= 0:
        gives, v = _given_by(world, h), world.room.owner[h]
        if gives > 0:
            price += world.merit.price[v] * gives / gpus_of(world.work, v)
        h = world.room.after[h]
    return price


@once
def _carry_out(world: World, hunt: Hunt) -> bool:
    """The chosen leave, the workload keeps the seats it has claimed."""
    prey, out, gone = world.prey, world.out, 0
    for k in range(prey.count[FIRST], prey.count[END]):
        v = prey.picked[k]
        note_loss(world, k)
        evict(world, v, codes.GIVES_WAY)
        _quote(world, hunt, v)
        gone += 1
    world.merit.left[hunt.top] -= gone
    changed(world, ROOM, hunt.c, EVERY)
    start_or_promise(world, hunt.w, hunt.c, world.work.least[hunt.w])
    if out.action[hunt.w] == codes.RESERVE:
        out.figures[hunt.w, 4] = gone
    return True


@inner
def _quote(world: World, hunt: Hunt, v: int) -> None:
    out, prey, merit, work = world.out, world.prey, world.merit, world.work
    ahead = lead_of(work, v, world.rules.now)
    out.rival[v], out.blame[v], out.lost[v], out.served[hunt.w] = (
        hunt.w,
        hunt.top,
        prey.lost[v],
        True,
    )
    out.figures[v, 0] = min(ahead, float(UNLIMITED))
    out.figures[v, 1] = min(expected_of(world, v), float(UNLIMITED))
    out.figures[v, 2] = min(merit.expected[hunt.w], float(UNLIMITED))
    out.figures[v, 3] = hunt.need
    out.figures[v, 4] = world.tree.sharing[work.queue[v]] == codes.PROMISE and ahead > AHEAD_S
    prey.rated[0] += 1


@inner
def may_make_room(world: World, w: int, c: int) -> bool:
    """Whether the other ways of making room are open to ``w`` where its subtree gives out by merit: across
    its border, by priority, and for its nominal once it has waited past the bound of its class, or at once
    where nobody plays along.
    """
    q = world.work.queue[w]
    entitled = world.line.rank[w] == RISEN or not world.tree.played[q]
    world.merit.calm[w] = not entitled
    if world.tree.top[q] > 0 or _is_above_others(world, w, q):
        return True
    return bool(entitled and inside_nominal(world, q, -1, c, need_of(world, w)))


@once
def _is_above_others(world: World, w: int, q: int) -> bool:
    """Whether lower priority runs in its leaf."""
    value, rank, line = world.ranks.value, world.work.priority, world.line
    for k in range(line.runs[q + 1], line.runs[q + 2]):
        if rank[line.running[k]] >= 0 and value[rank[line.running[k]]] < value[rank[w]]:
            return True
    return False
