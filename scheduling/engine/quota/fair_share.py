"""What lenders keep back from a loan, and what evictions leave to a queue."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.model import UNLIMITED
from scheduling.engine.state.input import Quotas, Tree
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.session import Session

PLAIN, LENT, ROUNDED = 0, 1, 2
"""How far a reclaim goes: to fair shares; for what is owed also to what others hold above their nominal,
though inside their shares, which is lent; or past the share of the workload by a part of a gang, where held
and fair are closer to each other afterwards, summed over all queues.
"""


@inner
def sharer(tree: Tree, q: int) -> int:
    """The queue that others beside it see: that which gives out by merit, else ``q``."""
    return int(tree.sharing.top[q] if tree.sharing.top[q] >= 0 else q)


@inner
def takes_kept(world: Session, q: int, c: int, gpus: int) -> int:
    """The lowest queue in which ``gpus`` more for ``q``, above fair share, would use what is kept back."""
    kid, keeps = -1, 0
    while q > 0:
        keeps = keeps_back(world, q, c, gpus, kid, keeps)
        q, kid = world.tree.parent[q], q
        kept_back = kept_below(world.tree, world.quotas, world.queues, q, c, gpus, kid, keeps)
        if world.queues.usage.gpus[c, q] + gpus + kept_back > _most(
            world.quotas, world.queues, q, c
        ):
            return q
    return -1


@inner
def kept_from(world: Session, q: int, c: int, gpus: int, top: int) -> int:
    """What the children of ``top``, above ``q``, keep back where ``q`` takes ``gpus`` more."""
    kid, keeps = -1, 0
    while q != top:
        keeps = keeps_back(world, q, c, gpus, kid, keeps)
        q, kid = world.tree.parent[q], q
    return int(kept_below(world.tree, world.quotas, world.queues, top, c, gpus, kid, keeps))


@inner
def keeps_back(world: Session, q: int, c: int, gpus: int, kid: int, keeps: int) -> int:
    """What ``q`` keeps back of nominal that it does not hold, whether or not it asks for it: all beyond its
    lending limit, and no less than its children do, as far as its own nominal goes. With ``gpus`` more in
    ``q`` and its child ``kid``, which keeps back ``keeps`` then.
    """
    if world.queues.usage.lends[c] == 0:
        return 0
    nominal = world.quotas.nominal[c, q]
    below = _kept_by_children(
        world.tree, world.queues, world.quotas, q, c, gpus, kid, keeps, nominal
    )
    return max(below, nominal - world.queues.usage.gpus[c, q] - gpus - world.quotas.lending[c, q])


@inner
def kept_below(
    tree: Tree, quotas: Quotas, queues: Queues, q: int, c: int, gpus: int, kid: int, keeps: int
) -> int:
    """What the children of ``q`` keep back, as ``keeps_back``, as far as the limit of ``q`` goes."""
    if queues.usage.lends[c] == 0:
        return 0
    most = _most(quotas, queues, q, c)
    return _kept_by_children(tree, queues, quotas, q, c, gpus, kid, keeps, most)


@inner
def _most(quotas: Quotas, queues: Queues, q: int, c: int) -> int:
    """Milli-GPU that ``q`` may hold."""
    return queues.demand.supply[c] if q == 0 else quotas.cap[c, q]


@inner
def _kept_by_children(
    tree: Tree,
    queues: Queues,
    quotas: Quotas,
    q: int,
    c: int,
    gpus: int,
    kid: int,
    keeps: int,
    within: int,
) -> int:
    """No more than ``within`` leaves beside what children hold of their nominal, but for what they keep."""
    nominal, kept_back = quotas.nominal, 0
    for i in range(tree.kid_start[q], tree.kid_start[q + 1]):
        child = tree.kids[i]
        its = keeps if child == kid else queues.usage.kept_back[c, child]
        usage = queues.usage.gpus[c, child] + (gpus if child == kid else 0)
        kept_back += its
        within -= min(usage, nominal[c, child] - its)
    return max(0, min(kept_back, within))


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
def guarded(world: Session, c: int, q: int) -> float:
    """What evictions leave to queue ``q``: its fair share; while a grace lasts no less than the share, or
    the nominal, of before.
    """
    fair = world.division.fair[c, q]
    if world.queues.redivision.grace_until_s[c] == 0.0:
        return fair
    if world.rules.now < world.quotas.grace[c, q]:
        fair = max(fair, float(world.former.nominal[c, q]))
    return max(fair, world.guard.fair[c, q])


@inner
def left_by(quotas: Quotas, division: Division, c: int, q: int, stretch: int) -> float:
    """What a reclaim leaves to queue ``q`` where no grace protects more."""
    fair = division.fair[c, q]
    return min(fair, float(quotas.nominal[c, q])) if stretch == LENT else fair


@inner
def kept_by(world: Session, c: int, q: int, stretch: int, graced: bool) -> float:
    """The same; where a grace is respected no less than it protects. What is lent is asked for only where
    none lasts.
    """
    if graced and stretch != LENT:
        return guarded(world, c, q)
    return left_by(world.quotas, world.division, c, q, stretch)


@inner
def beyond_nominal(quotas: Quotas, division: Division, queues: Queues, c: int, q: int) -> int:
    """Milli-GPU that others may take from ``q`` at most: it keeps its nominal, unless that is oversubscribed;
    then shares alone say who keeps what.
    """
    if division.short[c, q]:
        return UNLIMITED
    return int(max(0, queues.usage.gpus[c, q] - quotas.nominal[c, q]))


@inner
def below_nominal(
    quotas: Quotas, division: Division, queues: Queues, c: int, q: int, gpus: int
) -> int:
    """Milli-GPU that ``q`` would lack of its nominal with ``gpus`` less; 0 where it is oversubscribed."""
    if division.short[c, q]:
        return 0
    return int(max(0, quotas.nominal[c, q] - queues.usage.gpus[c, q] + gpus))


@inner
def grace_over(world: Session, c: int, q: int) -> float:
    """When the grace that protects work of class ``c`` in queue ``q`` ends, 0 if none does."""
    while q > 0:
        if guarded(world, c, q) > world.division.fair[c, q]:
            return world.queues.redivision.grace_until_s[c]
        q = world.tree.parent[q]
    return 0.0
