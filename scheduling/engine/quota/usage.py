"""What queues and users hold, kept up as decisions fall."""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Floats
from scheduling.engine.model import UNLIMITED
from scheduling.engine.quota.fair_share import keeps_back
from scheduling.engine.state.input import Nodes, Rules, Tree, Users, Work
from scheduling.engine.state.order import Ordering
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS, GPUS


@inner
def clear_usage(tree: Tree, rules: Rules, queues: Queues, users: Users) -> None:
    """Nothing is held; users start with what they held of late."""
    usage, budget = queues.usage, tree.budget
    for q in range(budget.size):
        usage.dominant_share[q] = 0.0
        usage.eviction_budget[q], usage.running[q] = budget[q], 0
        for c in range(usage.gpus.shape[0]):
            usage.gpus[c, q] = usage.held_fixed[c, q] = usage.leaving[c, q] = 0
    of_late, strength = users.usage, rules.user_history
    for pair in range(of_late.size):
        usage.user_weighted[pair] = int(of_late[pair] * strength + 0.5)
    if queues.limits.any:
        for pair in range(of_late.size):
            usage.user_running[pair] = usage.user_gpus[pair] = 0


@inner
def hold(world: Session, w: int, c: int, gpus: int) -> None:
    """``w`` holds ``gpus`` as the cycle begins; queues above are told by ``sum_up_usage``."""
    work, queues = world.work, world.queues
    usage, q, p = queues.usage, work.queue[w], work.priority[w]
    usage.gpus[c, q] += gpus
    book_start(world.tree, work, queues, world.users, w, 1)
    book_user(world.nodes, work, queues, world.users, w, c, gpus)
    if p >= 0 and not world.ranks.preemptible[p]:
        usage.held_fixed[c, q] += gpus


@inner
def sum_up_usage(tree: Tree, queues: Queues) -> None:
    """From the leaves, where work was written down, to the root."""
    usage, parent = queues.usage, tree.parent
    for c in range(usage.gpus.shape[0]):
        for q in range(parent.size - 1, 0, -1):
            usage.gpus[c, parent[q]] += usage.gpus[c, q]
            usage.held_fixed[c, parent[q]] += usage.held_fixed[c, q]


@inner
def note_leaving(tree: Tree, queues: Queues, c: int, q: int, gpus: int) -> None:
    """``gpus`` of queue ``q`` leave, and count in the limits of all above it until they are gone."""
    while q > 0:
        queues.usage.leaving[c, q] += gpus
        q = tree.parent[q]


@inner
def spend_budget(tree: Tree, queues: Queues, q: int, gpus: int) -> None:
    """Take ``gpus`` from the eviction budgets of ``q`` and of all above it."""
    while q > 0:
        queues.usage.eviction_budget[q] -= gpus
        q = tree.parent[q]


@inner
def find_ratios(tree: Tree, nodes: Nodes, division: Division, queues: Queues) -> None:
    """How far each queue is from its share, by which they take turns, and how large that is."""
    rate, fair = nodes.rate, division.fair
    for q in range(tree.parent.size):
        queues.usage.dominant_share[q] = dominant_ratio(rate, queues, division, q)
        size = 0.0
        for c in range(rate.size):
            size += fair[c, q] * rate[c]
        queues.usage.fair_size[q] = int(size + 0.5)


@inner
def _note_waits(tree: Tree, queues: Queues, ordering: Ordering) -> None:
    """Since when somebody waits in each queue and all below it."""
    since = queues.usage.waits_since
    oldest = ordering.pending.oldest
    parent = tree.parent
    for q in range(parent.size):
        since[q] = oldest[q]
    for q in range(parent.size - 1, 0, -1):
        since[parent[q]] = min(since[parent[q]], since[q])


@inner
def charge(world: Session, w: int, c: int, members: int, fixed: bool) -> None:
    """Add ``members`` of ``w`` (negative: take away) to its queue, all above it and its user."""
    work, tree, queues = world.work, world.tree, world.queues
    gpus = work.need[GPUS, w] * members
    book_user(world.nodes, work, queues, world.users, w, c, gpus)
    q = work.queue[w]
    while True:
        queues.usage.gpus[c, q] += gpus
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
    for c in range(queues.usage.gpus.shape[0]):
        usage = queues.usage.gpus[c, q]
        if usage <= 0:
            continue
        fair = division.fair[c, q]
        ratio = usage / fair * rate[c] if fair > EPS else np.inf
        worst = max(worst, ratio)
    return worst


@inner
def book_user(
    nodes: Nodes, work: Work, queues: Queues, users: Users, w: int, c: int, gpus: int
) -> None:
    """The user of ``w`` holds ``gpus`` more (negative: less). Fairness between users weighs classes by
    their exchange rates, limits do not: they count in its queue and in all above it.
    """
    usage, pair = queues.usage, work.user[w]
    usage.user_weighted[pair] += weighed(gpus, nodes.rate[c])
    while queues.limits.any and pair >= 0:
        usage.user_gpus[pair] += gpus
        pair = users.above[pair]


@inner
def weighed(gpus: int, rate: float) -> int:
    """``gpus`` in those of the reference class, exact: the order of additions must not matter."""
    amount = int(abs(gpus) * rate + 0.5)
    return amount if gpus > 0 else -amount


@inner
def book_start(tree: Tree, work: Work, queues: Queues, users: Users, w: int, more: int) -> None:
    """``more`` workloads (1 or -1) like ``w`` run in its queue and in all above it."""
    if queues.limits.any == 0:
        return
    q, pair = work.queue[w], work.user[w]
    while q > 0:
        queues.usage.running[q] += more
        q = tree.parent[q]
    while pair >= 0:
        queues.usage.user_running[pair] += more
        pair = users.above[pair]


@inner
def note_kept(world: Session) -> None:
    """What each queue keeps back as it stands, where any has a lending limit."""
    queues, quotas = world.queues, world.quotas
    for c in range(queues.usage.lends.size):
        queues.usage.lends[c] = 0
        for q in range(queues.usage.dominant_share.size):
            if quotas.nominal[c, q] > 0 and quotas.lending[c, q] < UNLIMITED:
                queues.usage.lends[c] = 1
        for q in range(queues.usage.dominant_share.size - 1, 0, -1):
            queues.usage.kept_back[c, q] = keeps_back(world, q, c, 0, -1, 0)


@inner
def weigh_queues(world: Session) -> None:
    """Where each queue stands, once the division is known: its ratio, what waits, what it keeps back."""
    find_ratios(world.tree, world.nodes, world.division, world.queues)
    _note_waits(world.tree, world.queues, world.ordering)
    note_kept(world)
