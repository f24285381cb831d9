"""The division: to how much of a GPU class each queue is entitled (DESIGN 3.1).

Demand and what is kept back are summed from the leaves up, shares are handed from the root down. One
class is one row of every table; classes do not meet before the order of queues. What each step gave is
written down on the way, so that pages show the very division that decided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.state.input import Quotas, Tree
from scheduling.engine.state.queues import Division
from scheduling.engine.state.units import EPS

NO_TIER = -(1 << 62)


@inner
def divide(
    tree: Tree,
    quotas: Quotas,
    capacity: Ints,
    requests: Ints,
    charged: Ints,
    history: float,
    out: Division,
) -> None:
    """Fill ``out`` for ``asked`` [class, queue], what each leaf holds and waits for (milli-GPU).

    ``charged`` [class, queue] is the usage (micro-GPU) that recent starts are charged beforehand.
    """
    for c in range(capacity.size):
        _add_charges(quotas, c, charged, capacity[c], out)
        _sum_up(tree, quotas, c, requests, out)
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
    work.kept_back[c, q] = _keep(tree, quotas, c, q, work)
    x = tree.parent[q]
    while x > 0:
        more = work.demand[c, x]
        for i in range(tree.kid_start[x], tree.kid_start[x + 1]):
            more += work.demand[c, tree.kids[i]] - base.demand[c, tree.kids[i]]
        raw = base.demand[c, x]
        if raw < quotas.cap[c, x]:
            work.demand[c, x] = min(more, quotas.cap[c, x])
        work.kept_back[c, x] = _keep(tree, quotas, c, x, work)
        x = tree.parent[x]
    share = _descend(tree, quotas, c, q, history, work)
    x = q
    while x > 0:
        work.demand[c, x] = base.demand[c, x]
        work.kept_back[c, x] = base.kept_back[c, x]
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
def _add_charges(quotas: Quotas, c: int, charged: Ints, capacity: int, out: Division) -> None:
    """Decayed usage as a share of capacity, with what recent starts will use first."""
    for q in range(charged.shape[1]):
        out.usage[c, q] = quotas.usage[c, q] + charged[c, q] / 1000.0 / max(capacity, 1)


@inner
def _sum_up(tree: Tree, quotas: Quotas, c: int, requests: Ints, out: Division) -> None:
    """Demand of each subtree, at most its cap, and the idle nominal that it keeps back."""
    queues = tree.parent.size
    for q in range(queues):
        out.demand[c, q] = requests[c, q]
        out.kept_below[c, q] = 0.0
    for q in range(queues - 1, 0, -1):
        out.demand[c, q] = min(out.demand[c, q], quotas.cap[c, q])
        out.kept_back[c, q] = _keep(tree, quotas, c, q, out)
        out.demand[c, tree.parent[q]] += out.demand[c, q]


@inner
def _keep(tree: Tree, quotas: Quotas, c: int, q: int, out: Division) -> float:
    """Nominal that nobody outside may use: what is idle beyond the lending limit; no less than what children
    keep back of theirs, as far as what is owed to children leaves that.
    """
    nominal, below, owed = quotas.nominal[c, q], 0.0, 0.0
    for i in range(tree.kid_start[q], tree.kid_start[q + 1]):
        kid = tree.kids[i]
        below += out.kept_back[c, kid]
        owed += _owed(quotas, c, kid, out)
    idle = max(0, nominal - out.demand[c, q])
    return max(float(idle - quotas.lending[c, q]), min(below, max(0.0, nominal - owed)))


@inner
def _owed(quotas: Quotas, c: int, q: int, out: Division) -> float:
    """The guarantee of ``q``: its nominal as far as it asks for it, but for what is kept back in it."""
    return min(quotas.nominal[c, q] - out.kept_back[c, q], float(out.demand[c, q]))


@inner
def _split(tree: Tree, quotas: Quotas, c: int, parent: int, history: float, out: Division) -> None:
    """Divide what ``parent`` has among its children: guarantees, kept back, then the spare."""
    owed, want, kept_back = _guarantee(tree, quotas, c, parent, out)
    rest = out.capacity[c, parent] - owed
    spare = rest - kept_back
    if rest < 0.0:
        _ration(tree, quotas, c, parent, out)
    elif spare >= want:
        _satisfy(tree, c, parent, out)
    else:
        _share_out(tree, quotas, c, parent, spare, history, out)
    scale = min(1.0, max(rest, 0.0) / kept_back) if kept_back > 0.0 else 0.0
    out.kept_below[c, parent] = kept_back * scale
    for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
        q = tree.kids[i]
        out.capacity[c, q] = out.fair[c, q] + out.kept_back[c, q] * scale


@inner
def _guarantee(
    tree: Tree, quotas: Quotas, c: int, parent: int, out: Division
) -> tuple[float, float, float]:
    """Give each child what it is guaranteed; sums: guaranteed, wanted beyond it, kept back."""
    owed, want, kept_back = 0.0, 0.0, 0.0
    for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
        q = tree.kids[i]
        part = _owed(quotas, c, q, out)
        out.guaranteed[c, q] = out.fair[c, q] = part
        out.spare[c, q] = out.remainder[c, q] = out.norm[c, q] = out.ratio[c, q] = 0.0
        out.short[c, q] = False
        owed += part
        want += out.demand[c, q] - part
        kept_back += out.kept_back[c, q]
    return owed, want, kept_back


@inner
def _ration(tree: Tree, quotas: Quotas, c: int, parent: int, out: Division) -> None:
    """Fill the guarantees in proportion to nominal: together they are more than there is."""
    for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
        q = tree.kids[i]
        out.want[c, q], out.pull[c, q] = out.guaranteed[c, q], quotas.nominal[c, q]
        out.fair[c, q] = 0.0
    pour(tree, c, parent, out.capacity[c, parent], out)
    for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
        q = tree.kids[i]
        out.short[c, q] = out.fair[c, q] < out.guaranteed[c, q] - EPS
        out.guaranteed[c, q] = out.fair[c, q]


@inner
def _satisfy(tree: Tree, c: int, parent: int, out: Division) -> None:
    """Nothing is short: all get what they ask for, whatever their weights."""
    for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
        q = tree.kids[i]
        out.fair[c, q] = out.demand[c, q]
        out.spare[c, q] = out.fair[c, q] - out.guaranteed[c, q]


@inner
def _share_out(
    tree: Tree, quotas: Quotas, c: int, parent: int, spare: float, history: float, out: Division
) -> None:
    """Pour the spare tier by tier, highest first; what those with a pull leave goes to the others of
    the tier by weight alone.
    """
    tier = -NO_TIER
    while spare > 0.0:
        tier = _tier_below(tree, quotas, c, parent, tier, out)
        if tier == NO_TIER:
            return
        _weigh(tree, quotas, c, parent, tier, history, out)
        spare = pour(tree, c, parent, spare, out)
        _write_down(tree, c, parent, tier, out)
        if spare > 0.0 and history > 0.0:
            for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
                q = tree.kids[i]
                out.pull[c, q] = quotas.weight[c, q]
            spare = pour(tree, c, parent, spare, out)
            _write_down(tree, c, parent, tier, out)


@inner
def _tier_below(tree: Tree, quotas: Quotas, c: int, parent: int, tier: int, out: Division) -> int:
    """The next tier in which somebody with a weight still wants more."""
    best = NO_TIER
    for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
        q = tree.kids[i]
        wants = out.demand[c, q] > out.fair[c, q] and quotas.weight[c, q] > 0.0
        if wants and best < tree.tier[q] < tier:
            best = tree.tier[q]
    return best


@inner
def _weigh(
    tree: Tree, quotas: Quotas, c: int, parent: int, tier: int, history: float, out: Division
) -> None:
    """Wants of the tier, and pulls ``w = max(0, n + k (n - u))``: ``n`` is the weight normalised among
    the siblings that the guarantee left unsatisfied.

    ``n`` is fixed here: normalising again whenever a sibling is full could lower a queue's share when
    its own weight rises (law 9).
    """
    weights = 0.0
    for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
        q = tree.kids[i]
        out.want[c, q] = 0.0
        if tree.tier[q] == tier and quotas.weight[c, q] > 0.0:
            out.want[c, q] = max(0.0, out.demand[c, q] - out.fair[c, q])
            weights += quotas.weight[c, q] if out.want[c, q] > 0.0 else 0.0
    for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
        q = tree.kids[i]
        if out.want[c, q] > 0.0:
            n = quotas.weight[c, q] / weights
            w = max(0.0, n + history * (n - out.usage[c, q]))
            out.norm[c, q], out.ratio[c, q], out.pull[c, q] = n, w, w


@inner
def _write_down(tree: Tree, c: int, parent: int, tier: int, out: Division) -> None:
    """What the last pour gave: by pull, or what was left by weight alone."""
    for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
        q = tree.kids[i]
        more = out.fair[c, q] - out.guaranteed[c, q]
        if tree.tier[q] == tier and out.norm[c, q] > 0.0:
            if out.ratio[c, q] > 0.0:
                out.spare[c, q] = more
            else:
                out.remainder[c, q] = more


@kernel
def potentials(world: Any, work: Any, out: Floats) -> None:
    """Potential share of every queue in every class into ``out`` [class, queue]. ``work`` is a copy of
    the division, which changes.
    """
    base = world.division
    for c in range(out.shape[0]):
        for q in range(1, out.shape[1]):
            out[c, q] = potential(world.tree, world.quotas, c, q, world.rules.history, base, work)
        out[c, 0] = base.capacity[c, 0]


@inner
def pour(tree: Tree, c: int, parent: int, total: float, out: Division) -> float:
    """Pour ``total`` over the wants of the children of ``parent`` in ratio of ``out.pull``; whoever is
    full leaves the rest to the others.

    Weighted max-min fairness (Bertsekas and Gallager, Data Networks, 6.5.2): the level t rises until
    sum(min(want, pull t)) = total. Pull zero gets nothing. Takes from ``out.want``, adds to
    ``out.fair`` and returns what remains once all are full. Each round fills all whom the level of this
    moment satisfies, for it never falls; nothing has to be sorted.
    """
    want, pull = out.want, out.pull
    while total > 0.0:
        pulls = 0.0
        for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
            q = tree.kids[i]
            if want[c, q] > 0.0:
                pulls += pull[c, q]
        if pulls <= 0.0:
            return total
        level, filled = total / pulls, False
        for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
            q = tree.kids[i]
            part = want[c, q]
            if part > 0.0 and pull[c, q] > 0.0 and part <= level * pull[c, q]:
                out.fair[c, q] += part
                total -= part
                want[c, q] = 0.0
                filled = True
        if not filled:
            _level(tree, c, parent, level, out)
            return 0.0
    return 0.0


@inner
def _level(tree: Tree, c: int, parent: int, level: float, out: Division) -> None:
    """All who want more than the level get it."""
    for i in range(tree.kid_start[parent], tree.kid_start[parent + 1]):
        q = tree.kids[i]
        if out.want[c, q] > 0.0:
            out.fair[c, q] += level * out.pull[c, q]
