"""Which queue goes first."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.state.input import Tree
from scheduling.engine.state.queues import Queues


@inner
def neediest(tree: Tree, queues: Queues, left: Ints) -> int:
    """Walk down from the root to the leaf that goes first, among those with workloads ``left``.

    Ladder at each level: lowest dominant ratio, highest tier, largest fair share, longest wait,
    lowest name. Ends at a queue that gives out by merit among all below it.
    """
    q = 0
    while tree.sharing.top[q] < 0 and tree.kid_start[q] < tree.kid_start[q + 1]:
        best = -1
        for i in range(tree.kid_start[q], tree.kid_start[q + 1]):
            kid = tree.kids[i]
            if left[kid] > 0 and (best < 0 or _before(tree, queues, kid, best)):
                best = kid
        q = best
    return q


@inner
def _before(tree: Tree, queues: Queues, a: int, b: int) -> bool:
    if queues.usage.dominant_share[a] != queues.usage.dominant_share[b]:
        return queues.usage.dominant_share[a] < queues.usage.dominant_share[b]
    if tree.tier[a] != tree.tier[b]:
        return tree.tier[a] > tree.tier[b]
    if queues.usage.fair_size[a] != queues.usage.fair_size[b]:
        return queues.usage.fair_size[a] > queues.usage.fair_size[b]
    return queues.usage.waits_since[a] < queues.usage.waits_since[b]


@inner
def count_up(tree: Tree, left: Ints, q: int, one: int) -> None:
    """``one`` more in ``q`` and all above it."""
    while q >= 0:
        left[q] += one
        q = tree.parent[q]
