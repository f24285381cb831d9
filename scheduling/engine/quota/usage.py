"""What queues and users hold, kept up as decisions fall."""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import Floats
from scheduling.engine.quota.fair_share import keeps_back, note_kept
from scheduling.engine.quota.limits import find_limits
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.shares import Division
from scheduling.engine.state.units import EPS, GPUS


@inner
def clear_queues(world: Session) -> None:
    """Nothing is held or asked for; users start with what they held of late."""
    queues = world.queues
    for q in range(queues.usage.dominant_share.size):
        queues.usage.dominant_share[q] = 0.0
        queues.usage.eviction_budget[q] = world.tree.budget[q]
        queues.usage.running[q] = queues.demand.queued[q] = 0
    for c in range(queues.reservations.slot.size):
        for q in range(queues.usage.dominant_share.size):
            queues.usage.held[c, q] = queues.usage.held_fixed[c, q] = 0
            queues.demand.asked[c, q] = queues.demand.asked_outside[c, q]
            queues.usage.leaving[c, q] = queues.demand.charged_micro[c, q] = 0
            queues.starts.started[c, q], queues.starts.until_s[c, q] = 0, 0.0
            queues.turns.slot[c, q] = -1
        queues.reservations.slot[c] = queues.starts.first_promised[c] = -1
        queues.demand.supply[c] = world.nodes.capacity[c]
        world.room.coming[c] = 0
    find_limits(world)
    usage, by_user, strength = (
        world.users.usage,
        queues.usage.user_weighted,
        world.rules.user_history,
    )
    for pair in range(by_user.size):
        by_user[pair] = int(usage[pair] * strength + 0.5)
    if queues.limits.any:
        for pair in range(by_user.size):
            queues.usage.user_running[pair] = queues.usage.user_gpus[pair] = 0
            queues.demand.user_queued[pair] = queues.demand.user_asks[pair] = 0


@inner
def find_ratios(world: Session) -> None:
    """How far each queue is from its share, by which they take turns, and how large that is."""
    queues, rate, fair = world.queues, world.nodes.rate, world.division.fair
    for q in range(world.tree.parent.size):
        queues.usage.dominant_share[q] = dominant_ratio(rate, queues, world.division, q)
        size = 0.0
        for c in range(rate.size):
            size += fair[c, q] * rate[c]
        queues.usage.fair_size[q] = int(size + 0.5)


@once
def _note_waits(world: Session) -> None:
    """Since when somebody waits in each queue and all below it."""
    since, oldest, parent = (
        world.queues.usage.waits_since,
        world.ordering.pending.oldest,
        world.tree.parent,
    )
    for q in range(parent.size):
        since[q] = oldest[q]
    for q in range(parent.size - 1, 0, -1):
        since[parent[q]] = min(since[parent[q]], since[q])


@inner
def charge(world: Session, w: int, c: int, members: int, fixed: bool) -> None:
    """Add ``members`` of ``w`` (negative: take away) to its queue, all above it and its user."""
    tree, queues = world.tree, world.queues
    gpus = world.work.need[GPUS, w] * members
    book_user(world, w, c, gpus)
    q = world.work.queue[w]
    while True:
        queues.usage.held[c, q] += gpus
        if fixed:
            queues.usage.held_fixed[c, q] += gpus
        queues.usage.dominant_share[q] = dominant_ratio(world.nodes.rate, queues, world.division, q)
        if q == 0:
            return
        queues.usage.kept_back[c, q] = keeps_back(world, q, c, 0, -1, 0)
        q = tree.parent[q]


@inner
def dominant_ratio(rate: Floats, queues: Queues, division: Division, q: int) -> float:
    """Largest of held / fair share over classes, each weighed by its exchange rate.

    Dominant resource fairness (Ghodsi et al., NSDI 2011) over GPU classes; holding without a share
    is infinitely far above it.
    """
    worst = 0.0
    for c in range(queues.usage.held.shape[0]):
        held = queues.usage.held[c, q]
        if held <= 0:
            continue
        fair = division.fair[c, q]
        ratio = held / fair * rate[c] if fair > EPS else np.inf
        worst = max(worst, ratio)
    return worst


@inner
def book_user(world: Session, w: int, c: int, gpus: int) -> None:
    """The user of ``w`` holds ``gpus`` more (negative: less). Fairness between users weighs classes by
    their exchange rates, limits do not.
    """
    queues = world.queues
    queues.usage.user_weighted[world.work.user[w]] += weighed(gpus, world.nodes.rate[c])
    if queues.limits.any:
        book_gpus(world, w, gpus)


@once
def weighed(gpus: int, rate: float) -> int:
    """``gpus`` in those of the reference class, exact: the order of additions must not matter."""
    amount = int(abs(gpus) * rate + 0.5)
    return amount if gpus > 0 else -amount


@inner
def book_gpus(world: Session, w: int, gpus: int) -> None:
    """The same for the limits: in its queue and in all above it."""
    pair = world.work.user[w]
    while pair >= 0:
        world.queues.usage.user_gpus[pair] += gpus
        pair = world.users.above[pair]


@inner
def book_start(world: Session, w: int, more: int) -> None:
    """``more`` workloads (1 or -1) like ``w`` run in its queue and in all above it."""
    queues = world.queues
    if queues.limits.any == 0:
        return
    q, pair = world.work.queue[w], world.work.user[w]
    while q > 0:
        queues.usage.running[q] += more
        q = world.tree.parent[q]
    while pair >= 0:
        queues.usage.user_running[pair] += more
        pair = world.users.above[pair]


@inner
def weigh_queues(world: Session) -> None:
    """Where each queue stands, once the division is known: its ratio, who waits, what it keeps back."""
    find_ratios(world)
    _note_waits(world)
    note_kept(world)
