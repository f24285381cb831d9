"""Progressive filling: the one primitive of the division."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.state.input import Tree
from scheduling.engine.state.shares import Division


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
