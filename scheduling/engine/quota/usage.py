"""What queues and users hold, kept up as decisions fall."""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import Floats
from scheduling.engine.quota.fair_share import keeps_back, note_kept
from scheduling.engine.quota.limits import find_limits
from scheduling.engine.state.session import World
from scheduling.engine.state.shares import Division
from scheduling.engine.state.units import EPS, GPUS
from scheduling.engine.state.usage import Book


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
            book.turn[c, q] = -1
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
def find_ratios(world: World) -> None:
    """How far each queue is from its share, by which they take turns, and how large that is."""
    book, rate, fair = world.book, world.nodes.rate, world.division.fair
    for q in range(world.tree.parent.size):
        book.ratio[q] = dominant_ratio(rate, book, world.division, q)
        size = 0.0
        for c in range(rate.size):
            size += fair[c, q] * rate[c]
        book.fair_size[q] = int(size + 0.5)


@once
def _note_waits(world: World) -> None:
    """Since when somebody waits in each queue and all below it."""
    since, oldest, parent = world.book.waits_since, world.line.oldest, world.tree.parent
    for q in range(parent.size):
        since[q] = oldest[q]
    for q in range(parent.size - 1, 0, -1):
        since[parent[q]] = min(since[parent[q]], since[q])


@inner
def charge(world: World, w: int, c: int, members: int, fixed: bool) -> None:
    """Add ``members`` of ``w`` (negative: take away) to its queue, all above it and its user."""
    tree, book = world.tree, world.book
    gpus = world.work.need[GPUS, w] * members
    book_user(world, w, c, gpus)
    q = world.work.queue[w]
    while True:
        book.held[c, q] += gpus
        if fixed:
            book.fixed[c, q] += gpus
        book.ratio[q] = dominant_ratio(world.nodes.rate, book, world.division, q)
        if q == 0:
            return
        book.kept[c, q] = keeps_back(world, q, c, 0, -1, 0)
        q = tree.parent[q]


@inner
def dominant_ratio(rate: Floats, book: Book, division: Division, q: int) -> float:
    """Largest of held / fair share over classes, each weighed by its exchange rate.

    Dominant resource fairness (Ghodsi et al., NSDI 2011) over GPU classes; holding without a share
    is infinitely far above it.
    """
    worst = 0.0
    for c in range(book.held.shape[0]):
        held = book.held[c, q]
        if held <= 0:
            continue
        fair = division.fair[c, q]
        ratio = held / fair * rate[c] if fair > EPS else np.inf
        worst = max(worst, ratio)
    return worst


@inner
def book_user(world: World, w: int, c: int, gpus: int) -> None:
    """The user of ``w`` holds ``gpus`` more (negative: less). Fairness between users weighs classes by
    their exchange rates, limits do not.
    """
    book = world.book
    book.by_user[world.work.user[w]] += weighed(gpus, world.nodes.rate[c])
    if book.limited[0]:
        book_gpus(world, w, gpus)


@once
def weighed(gpus: int, rate: float) -> int:
    """``gpus`` in those of the reference class, exact: the order of additions must not matter."""
    amount = int(abs(gpus) * rate + 0.5)
    return amount if gpus > 0 else -amount


@inner
def book_gpus(world: World, w: int, gpus: int) -> None:
    """The same for the limits: in its queue and in all above it."""
    pair = world.work.user[w]
    while pair >= 0:
        world.book.user_gpus[pair] += gpus
        pair = world.users.above[pair]


@inner
def book_start(world: World, w: int, more: int) -> None:
    """``more`` workloads (1 or -1) like ``w`` run in its queue and in all above it."""
    book = world.book
    if book.limited[0] == 0:
        return
    q, pair = world.work.queue[w], world.work.user[w]
    while q > 0:
        book.running[q] += more
        q = world.tree.parent[q]
    while pair >= 0:
        book.user_running[pair] += more
        pair = world.users.above[pair]


@inner
def weigh_queues(world: World) -> None:
    """Where each queue stands, once the division is known: its ratio, who waits, what it keeps back."""
    find_ratios(world)
    _note_waits(world)
    note_kept(world)
