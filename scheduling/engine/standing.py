"""How a queue stands: its ratio to fair share, who goes first, and what a start would do to it."""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import (
    EPS,
    GPUS,
    UNLIMITED,
    Book,
    Division,
    Floats,
    Ints,
    Tree,
)
from scheduling.engine.compiled import inner, once
from scheduling.engine.limits import book_user, spent_hours
from scheduling.engine.world import World

PLAIN, LENT, ROUNDED = 0, 1, 2
"""How far a reclaim goes: to fair shares; for what is owed also to what others hold above their nominal,
though inside their shares, which is lent; or past the share of the workload by a part of a gang, where held
and fair are closer to each other afterwards, summed over all queues.
"""


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
def levels_over(tree: Tree, book: Book, division: Division, q: int, c: int, gpus: int) -> int:
    """Levels of the tree at which ``gpus`` more would lift the queue above its fair share."""
    over = 0
    while q > 0:
        over += book.held[c, q] + gpus > division.fair[c, q] + EPS
        q = tree.parent[q]
    return over


@once
def sharer(tree: Tree, q: int) -> int:
    """The queue whose share a start in ``q`` is held against: that which gives out by merit, else ``q``."""
    return int(tree.top[q] if tree.top[q] >= 0 else q)


@inner
def reach(tree: Tree, book: Book, division: Division, q: int, c: int, gpus: int) -> int:
    """The highest queue below which ``gpus`` more stay inside fair share on the way to ``q``.

    Inside it, and only there, the workload may take back what siblings hold above their share.
    """
    while q > 0 and book.held[c, q] + gpus <= division.fair[c, q] + EPS:
        q = tree.parent[q]
    return q


@inner
def inside_nominal(world: World, q: int, kid: int, c: int, gpus: int) -> bool:
    """Whether the nominal of queue ``q`` covers ``gpus`` more for its child ``kid`` whose own nominal does,
    or (-1) for itself or a child that has none. What children hold above theirs is lent and comes back first.
    """
    tree, held, nominal = world.tree, world.book.held, world.quotas.nominal
    if held[c, q] + gpus <= nominal[c, q]:
        return True
    if kid < 0:
        return False
    kept = 0
    for i in range(tree.kid_start[q], tree.kid_start[q + 1]):
        sibling = tree.kids[i]
        kept += min(held[c, sibling] + (gpus if sibling == kid else 0), nominal[c, sibling])
    return bool(kept <= nominal[c, q])


@inner
def over_limit(world: World, q: int, c: int, gpus: int) -> int:
    """The lowest queue whose limit ``gpus`` more would break, or whose hours are spent; -1 if none."""
    spent = spent_hours(world, q, c)
    if spent >= 0:
        return spent
    while q > 0:
        if world.book.held[c, q] + gpus > world.quotas.cap[c, q]:
            return q
        q = world.tree.parent[q]
    return -1


@inner
def over_nominal(world: World, q: int, c: int, gpus: int) -> int:
    """The lowest queue in which ``gpus`` that cannot be called back pass nominal or fair share, -1 if
    none: non-preemptible work runs only inside nominal (law 5). An oversubscribed guarantee is exact and a
    gang is whole, so the one that passes it may start, while nominal holds it.
    """
    division, fixed = world.division, world.book.fixed
    while q > 0:
        nominal, fair = float(world.quotas.nominal[c, q]), division.fair[c, q]
        rounded_up = division.short[c, q] and fixed[c, q] < fair - EPS
        if fixed[c, q] + gpus > (nominal if rounded_up else min(nominal, fair)) + EPS:
            return q
        q = world.tree.parent[q]
    return -1


@inner
def takes_kept(world: World, q: int, c: int, gpus: int) -> int:
    """The lowest queue in which ``gpus`` more for ``q``, above fair share, would use what is kept back."""
    kid, keeps = -1, 0
    while q > 0:
        keeps = keeps_back(world, q, c, gpus, kid, keeps)
        q, kid = world.tree.parent[q], q
        kept = kept_below(world, q, c, gpus, kid, keeps)
        if world.book.held[c, q] + gpus + kept > _most(world, q, c):
            return q
    return -1


@inner
def kept_from(world: World, q: int, c: int, gpus: int, top: int) -> int:
    """What the children of ``top``, above ``q``, keep back where ``q`` takes ``gpus`` more."""
    kid, keeps = -1, 0
    while q != top:
        keeps = keeps_back(world, q, c, gpus, kid, keeps)
        q, kid = world.tree.parent[q], q
    return int(kept_below(world, top, c, gpus, kid, keeps))


@inner
def keeps_back(world: World, q: int, c: int, gpus: int, kid: int, keeps: int) -> int:
    """What ``q`` keeps back of nominal that it does not hold, whether or not it asks for it: all beyond its
    lending limit, and no less than its children do, as far as its own nominal goes. With ``gpus`` more in
    ``q`` and its child ``kid``, which keeps back ``keeps`` then.
    """
    if world.book.lends[c] == 0:
        return 0
    nominal = world.quotas.nominal[c, q]
    below = _kept_by_children(world, q, c, gpus, kid, keeps, nominal)
    return max(below, nominal - world.book.held[c, q] - gpus - world.quotas.lending[c, q])


@inner
def kept_below(world: World, q: int, c: int, gpus: int, kid: int, keeps: int) -> int:
    """What the children of ``q`` keep back, as ``keeps_back``, as far as the limit of ``q`` goes."""
    if world.book.lends[c] == 0:
        return 0
    return _kept_by_children(world, q, c, gpus, kid, keeps, _most(world, q, c))


@once
def _most(world: World, q: int, c: int) -> int:
    """Milli-GPU that ``q`` may hold."""
    return world.book.supply[c] if q == 0 else world.quotas.cap[c, q]


@inner
def _kept_by_children(
    world: World, q: int, c: int, gpus: int, kid: int, keeps: int, within: int
) -> int:
    """No more than ``within`` leaves beside what children hold of their nominal, but for what they keep."""
    tree, book, nominal = world.tree, world.book, world.quotas.nominal
    kept = 0
    for i in range(tree.kid_start[q], tree.kid_start[q + 1]):
        child = tree.kids[i]
        its = keeps if child == kid else book.kept[c, child]
        held = book.held[c, child] + (gpus if child == kid else 0)
        kept += its
        within -= min(held, nominal[c, child] - its)
    return max(0, min(kept, within))


@inner
def note_kept(world: World) -> None:
    """What each queue keeps back as it stands, where any has a lending limit."""
    book, quotas = world.book, world.quotas
    for c in range(book.lends.size):
        book.lends[c] = 0
        for q in range(book.ratio.size):
            if quotas.nominal[c, q] > 0 and quotas.lending[c, q] < UNLIMITED:
                book.lends[c] = 1
        for q in range(book.ratio.size - 1, 0, -1):
            book.kept[c, q] = keeps_back(world, q, c, 0, -1, 0)


@once
def is_worn(world: World, w: int) -> bool:
    """Evicted so often that it is spared, and borrows no more."""
    return world.work.evictions[w] >= world.rules.max_evictions


@inner
def common_ancestor(tree: Tree, a: int, b: int) -> int:
    while a != b:
        if tree.depth[a] >= tree.depth[b]:
            a = tree.parent[a]
        else:
            b = tree.parent[b]
    return a


@inner
def is_below(tree: Tree, q: int, top: int) -> bool:
    """Whether ``q`` is ``top`` or in its subtree."""
    while tree.depth[q] > tree.depth[top]:
        q = tree.parent[q]
    return bool(q == top)


@inner
def branch_of(tree: Tree, q: int, other: int) -> int:
    """The queue of ``q``'s side just below where it meets ``other``; ``q`` itself inside one queue."""
    meet = common_ancestor(tree, q, other)
    while q != meet and tree.parent[q] != meet:
        q = tree.parent[q]
    return q


@inner
def neediest(tree: Tree, book: Book, left: Ints) -> int:
    """Walk down from the root to the leaf that goes first, among those with workloads ``left``.

    Ladder at each level: lowest dominant ratio, highest tier, largest fair share, who has waited longest,
    lowest name. Ends at a queue that gives out by merit among all below it.
    """
    q = 0
    while tree.top[q] < 0 and tree.kid_start[q] < tree.kid_start[q + 1]:
        best = -1
        for i in range(tree.kid_start[q], tree.kid_start[q + 1]):
            kid = tree.kids[i]
            if left[kid] > 0 and (best < 0 or _before(tree, book, kid, best)):
                best = kid
        q = best
    return q


@once
def _before(tree: Tree, book: Book, a: int, b: int) -> bool:
    if book.ratio[a] != book.ratio[b]:
        return book.ratio[a] < book.ratio[b]
    if tree.tier[a] != tree.tier[b]:
        return tree.tier[a] > tree.tier[b]
    if book.fair_size[a] != book.fair_size[b]:
        return book.fair_size[a] > book.fair_size[b]
    return book.waits_since[a] < book.waits_since[b]


@inner
def guarded(world: World, c: int, q: int) -> float:
    """What evictions leave to queue ``q``: its fair share; while a grace lasts no less than the share, or
    the nominal, of before.
    """
    fair = world.division.fair[c, q]
    if world.book.graced[c] == 0.0:
        return fair
    if world.rules.now < world.quotas.grace[c, q]:
        fair = max(fair, float(world.former.nominal[c, q]))
    return max(fair, world.guard.fair[c, q])


@inner
def left_by(world: World, c: int, q: int, stretch: int) -> float:
    """What a reclaim leaves to queue ``q`` where no grace protects more."""
    fair = world.division.fair[c, q]
    return min(fair, float(world.quotas.nominal[c, q])) if stretch == LENT else fair


@inner
def grace_over(world: World, c: int, q: int) -> float:
    """When the grace that protects work of class ``c`` in queue ``q`` ends, 0 if none does."""
    while q > 0:
        if guarded(world, c, q) > world.division.fair[c, q]:
            return world.book.graced[c]
        q = world.tree.parent[q]
    return 0.0
