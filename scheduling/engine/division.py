"""The division: who is entitled to how much of a GPU class (DESIGN 3.1).

Demand and what is kept back are summed from the leaves up, shares are handed from the root down. One
class is one row of every table; classes do not meet before the order of queues.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.arrays import EPS, Division, Floats, Ints, Quotas, Tree
from scheduling.engine.compiled import inner
from scheduling.engine.fill import fill


@inner
def divide(
    tree: Tree, quotas: Quotas, capacity: Ints, asked: Ints, history: float, out: Division
) -> None:
    """Fill ``out`` for ``asked`` [class, queue], what each leaf holds and waits for (milli-GPU)."""
    for c in range(capacity.size):
        _sum_up(tree, quotas, c, asked, out)
        out.fair[c, 0] = min(out.demand[c, 0], capacity[c])
        out.guaranteed[c, 0] = out.fair[c, 0]
        out.capacity[c, 0] = capacity[c]
        for q in range(tree.parent.size):
            if tree.kid_start[q] < tree.kid_start[q + 1]:
                _split(tree, quotas, c, q, history, out)


@inner
def potential(
    tree: Tree, quotas: Quotas, c: int, q: int, history: float, base: Division, work: Division
) -> float:
    """Share of queue ``q`` in class ``c`` if its demand were endless, all else as in ``base``.

    ``work`` is scratch that equals ``base`` before and after, but for the shares.
    """
    ends = base.capacity[c, 0]
    work.demand[c, q] = max(base.demand[c, q], np.int64(min(float(quotas.cap[c, q]), ends)))
    _keep(tree, quotas, c, q, work)
    x = tree.parent[q]
    while x > 0:
        more = work.demand[c, x]
        for i in range(tree.kid_start[x], tree.kid_start[x + 1]):
            more += work.demand[c, tree.kids[i]] - base.demand[c, tree.kids[i]]
        raw = base.demand[c, x]
        if raw < quotas.cap[c, x]:
            work.demand[c, x] = min(more, quotas.cap[c, x])
        _keep(tree, quotas, c, x, work)
        x = tree.parent[x]
    share = _descend(tree, quotas, c, q, history, work)
    x = q
    while x > 0:
        work.demand[c, x] = base.demand[c, x]
        work.kept[c, x] = base.kept[c, x]
        x = tree.parent[x]
    return share


@inner
def _descend(tree: Tree, quotas: Quotas, c: int, q: int, history: float, work: Division) -> float:
    """Divide again on the way from the root to ``q`` alone."""
    way = np.empty(tree.depth[q], np.int64)
    x = q
    for i in range(way.size - 1, -1, -1):
        way[i] = x
        x = tree.parent[x]
    for x in way:
        _split(tree, quotas, c, tree.parent[x], history, work)
    return work.fair[c, q]


@inner
def _sum_up(tree: Tree, quotas: Quotas, c: int, asked: Ints, out: Division) -> None:
    """Demand of each subtree, at most its cap, and the idle nominal that it keeps back."""
    queues = tree.parent.size
    for q in range(queues):
        out.demand[c, q] = asked[c, q]
    for q in range(queues - 1, 0, -1):
        out.demand[c, q] = min(out.demand[c, q], quotas.cap[c, q])
        out.demand[c, tree.parent[q]] += out.demand[c, q]
        _keep(tree, quotas, c, q, out)


@inner
def _keep(tree: Tree, quotas: Quotas, c: int, q: int, out: Division) -> None:
    """Idle nominal that nobody outside may use: beyond the lending limit, or kept by a child."""
    idle = max(0, quotas.nominal[c, q] - out.demand[c, q])
    below = 0.0
    for i in range(tree.kid_start[q], tree.kid_start[q + 1]):
        below += out.kept[c, tree.kids[i]]
    out.kept[c, q] = min(float(idle), max(float(idle - quotas.lending[c, q]), below))


@inner
def _split(tree: Tree, quotas: Quotas, c: int, parent: int, history: float, out: Division) -> None:
    """Divide what ``parent`` has among its children: guarantees, kept back, then the spare."""
    kids = tree.kids[tree.kid_start[parent] : tree.kid_start[parent + 1]]
    size = kids.size
    nominal, owed, kept = np.empty(size), np.empty(size), np.empty(size)
    for i in range(size):
        q = kids[i]
        nominal[i] = quotas.nominal[c, q]
        owed[i] = min(quotas.nominal[c, q], out.demand[c, q])
        kept[i] = out.kept[c, q]
    got = np.zeros(size)
    total = out.capacity[c, parent]
    rest = total - owed.sum()
    if rest < -EPS:
        fill(total, owed, nominal, got)
        rest = 0.0
    else:
        for i in range(size):
            got[i] = owed[i]
    kept_back = kept.sum()
    scale = min(1.0, max(rest, 0.0) / kept_back) if kept_back > 0.0 else 0.0
    granted = got.copy()
    _spare(tree, quotas, c, kids, max(0.0, rest - kept_back), history, out, got)
    out.kept_below[c, parent] = kept_back * scale
    for i in range(size):
        q = kids[i]
        out.fair[c, q] = got[i]
        out.guaranteed[c, q] = granted[i]
        out.capacity[c, q] = got[i] + kept[i] * scale
        out.short[c, q] = granted[i] < owed[i] - EPS


@inner
def _spare(
    tree: Tree,
    quotas: Quotas,
    c: int,
    kids: Ints,
    spare: float,
    history: float,
    out: Division,
    got: Floats,
) -> None:
    """Pour the spare tier by tier, highest first.

    Inside a tier ``w = max(0, n + k (n - u))`` with ``n`` the weight normalised among the siblings
    that the guarantee left unsatisfied. ``n`` is fixed there: normalising again whenever a sibling is
    full could lower a queue's share when its own weight rises (law 9). What those with w > 0 leave
    goes to the others by weight alone.
    """
    done = np.zeros(kids.size, np.bool_)
    while spare > EPS and not done.all():
        tier = -(1 << 62)
        for i in range(kids.size):
            if not done[i]:
                tier = max(tier, tree.tier[kids[i]])
        want, weight, share = np.zeros(kids.size), np.zeros(kids.size), np.zeros(kids.size)
        for i in range(kids.size):
            q = kids[i]
            if tree.tier[q] == tier:
                done[i] = True
                want[i] = out.demand[c, q] - got[i]
                if want[i] > 0.0:
                    weight[i] = quotas.weight[c, q]
        weights = weight.sum()
        if weights <= 0.0:
            continue
        for i in range(kids.size):
            n = weight[i] / weights
            if n > 0.0:
                share[i] = max(0.0, n + history * (n - quotas.usage[c, kids[i]]))
        spare = fill(spare, want, share, got)
        for i in range(kids.size):
            if share[i] > 0.0:
                want[i] = 0.0
        spare = fill(spare, want, weight, got)
