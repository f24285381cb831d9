"""What queues hold and ask for: the input of the division, summed from the workloads."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.arrays import GPUS, PENDING
from scheduling.engine.blame import blame_hours, never
from scheduling.engine.compiled import inner, once
from scheduling.engine.fitness import fits_empty, known_row, limit_too_low
from scheduling.engine.limits import book_gpus, book_start, may_ask, spent_hours, weighed
from scheduling.engine.record import note_coming
from scheduling.engine.world import World

SPARSE = 4
"""Of so many slots one waits at most where the line is the shorter way to all that wait."""


@inner
def sum_held(world: World) -> None:
    """Running work: what it holds, the part that cannot be called back, what it asks for with that, and the
    usage that starts of late are charged before they use it. Leaving work holds no quota any more.

    Arrays that each workload needs are looked up once.
    """
    work, book, line = world.work, world.book, world.line
    queue, gpu_class, members, leaving = work.queue, work.gpu_class, work.members, work.leaving
    need, most, elastic, user, rate = (
        work.need,
        work.most,
        work.elastic,
        work.user,
        world.nodes.rate,
    )
    held, asked, by_user, limited = book.held, book.asked, book.by_user, book.limited[0] != 0
    started, priority, preemptible = work.started, work.priority, world.ranks.preemptible
    rules, last, used = world.rules, 0.0, 0.0
    for k in range(line.count[2]):
        w = line.running[k]
        q, c, gpus = queue[w], gpu_class[w], need[GPUS, w] * members[w]
        if leaving[w]:
            note_coming(world, w, gpus)
        elif q < 0:
            book.supply[c] = max(0, book.supply[c] - gpus)
        else:
            wants = max(members[w], most[w]) if elastic[w] else members[w]
            asked[c, q] += wants * need[GPUS, w]
            held[c, q] += gpus
            by_user[user[w]] += weighed(gpus, rate[c])
            if limited:
                book_start(world, w, 1)
                book_gpus(world, w, gpus)
            if priority[w] >= 0 and not preemptible[priority[w]]:
                book.fixed[c, q] += gpus
            ahead = started[w] + rules.charge - rules.now
            if ahead > 0.0 and rules.history > 0.0:
                if ahead != last:
                    last, used = ahead, 1.0 - 2.0 ** (-ahead / rules.half_life)
                book.charged[c, q] += int(1000.0 * gpus * used)
    _sum_up(world)


@inner
def _sum_up(world: World) -> None:
    """From the leaves, where work was written down, to the root."""
    book, parent = world.book, world.tree.parent
    for c in range(book.held.shape[0]):
        for q in range(parent.size - 1, 0, -1):
            book.held[c, parent[q]] += book.held[c, q]
            book.fixed[c, parent[q]] += book.fixed[c, q]
            book.charged[c, parent[q]] += book.charged[c, q]


@inner
def sum_asked(world: World) -> None:
    """Waiting work: settle what cannot start whatever happens, and count what the others ask for.

    Where limits on workloads are set, the first in line count, and where only some are asked, they alone
    are in line. Otherwise slots are read as they lie in memory, unless few of them wait. Work that is
    leaving asks again.
    """
    line = world.line
    few = line.count[0] * SPARSE < world.work.phase.size
    if world.book.limited[0] or line.count[3] or few:
        for k in range(line.count[0]):
            _settle_or_ask(world, line.item[k])
    else:
        _ask_all(world)
    for k in range(line.count[2]):
        w = line.running[k]
        if world.work.leaving[w] and world.work.queue[w] > 0:
            _ask(world, w)


@inner
def _ask_all(world: World) -> None:
    """Every pending slot, in the order of memory and with its arrays looked up once. Most have nothing
    special about them: one class, and a shape that is known to fit.
    """
    work, book, known = world.work, world.book, world.seats.known
    phase, queue, wish, held = work.phase, work.queue, work.wish, work.held
    need, least, most, required = work.need, work.least, work.most, work.required
    stop, ceiling, asked, rationed = world.tree.stop, book.ceiling, book.asked, book.rationed
    for w in range(phase.size):
        if phase[w] != PENDING:
            continue
        q, c = queue[w], wish[0, w]
        common = q >= 0 and c >= 0 and not held[w] and (wish.shape[0] == 1 or wish[1, w] < 0)
        if (
            common
            and stop[q] == 0
            and not rationed[c]
            and least[w] * need[GPUS, w] <= ceiling[c, q]
        ):
            row = known_row(known, need, least, required, w, c)
            if row >= 0 and known[row, 6] == 1:
                asked[c, q] += most[w] * need[GPUS, w]
                continue
        _settle_or_ask(world, w)


@inner
def _settle_or_ask(world: World, w: int) -> None:
    work, q = world.work, world.work.queue[w]
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


@once
def _ask(world: World, w: int) -> None:
    """Add what ``w`` asks for to its queue in each class it may run on; it may fit none."""
    work, q = world.work, world.work.queue[w]
    fits, spent, may = 0, -1, True
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        if limit_too_low(world, w, c) >= 0 or not fits_empty(world, w, c):
            continue
        if spent_hours(world, q, c) >= 0:
            spent = c
            continue
        if fits == 0 and world.book.limited[0]:
            may = may_ask(world, w)
        fits += 1
        if may:
            world.book.asked[c, q] += work.most[w] * work.need[GPUS, w]
    if fits > 0 or work.phase[w] != PENDING:
        return
    if spent >= 0:
        blame_hours(world, w, spent)
    else:
        never(world, w, work.wish[0, w], limit_too_low(world, w, work.wish[0, w]))
