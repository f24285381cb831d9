"""How a queue stands: its ratio to fair share, who goes first, and what a start would do to it."""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import EPS, GPUS, Book, Division, Floats, Ints, Tree
from scheduling.engine.compiled import inner, once
from scheduling.engine.limits import book_user, spent_hours
from scheduling.engine.world import World


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
        q = tree.parent[q]


@inner
def levels_over(tree: Tree, book: Book, division: Division, q: int, c: int, gpus: int) -> int:
    """Levels of the tree at which ``gpus`` more would lift the queue above its fair share."""
    over = 0
    while q > 0:
        over += book.held[c, q] + gpus > division.fair[c, q] + EPS
        q = tree.parent[q]
    return over


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
    """Whether the nominal of queue ``q`` covers ``gpus`` more for its child ``kid`` (-1: for itself), whose
    own nominal does. What children hold above theirs is lent to them and comes back first.
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
    none: non-preemptible work runs only inside nominal (law 5).
    """
    while q > 0:
        inside = min(float(world.quotas.nominal[c, q]), world.division.fair[c, q])
        if world.book.fixed[c, q] + gpus > inside + EPS:
            return q
        q = world.tree.parent[q]
    return -1


@inner
def takes_kept(world: World, q: int, c: int, gpus: int) -> int:
    """The lowest queue in which ``gpus`` above fair share would use what a lending limit keeps back."""
    while q > 0:
        q = world.tree.parent[q]
        bound = world.division.capacity[c, 0] if q == 0 else float(world.quotas.cap[c, q])
        if world.book.held[c, q] + gpus + world.division.kept_below[c, q] > bound + EPS:
            return q
    return -1


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

    Ladder at each level: lowest dominant ratio, highest tier, lowest name.
    """
    q = 0
    while tree.kid_start[q] < tree.kid_start[q + 1]:
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
    return tree.tier[a] > tree.tier[b]


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
def grace_over(world: World, c: int, q: int) -> float:
    """When the grace that protects work of class ``c`` in queue ``q`` ends, 0 if none does."""
    while q > 0:
        if guarded(world, c, q) > world.division.fair[c, q]:
            return world.book.graced[c]
        q = world.tree.parent[q]
    return 0.0
