"""What quota says to a start, and the start itself."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Flags
from scheduling.engine.placement.place import is_free
from scheduling.engine.placement.unlike import all_fit
from scheduling.engine.quota.fair_share import (
    levels_over,
    over_limit,
    over_nominal,
    sharer,
    takes_kept,
)
from scheduling.engine.quota.limits import full_queue, user_limit
from scheduling.engine.state.input import Quotas, Tree, Work
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import BACKFILL, GPUS, PENDING
from scheduling.engine.statement.operations import admit, promise


@inner
def need_of(work: Work, w: int) -> int:
    return work.least[w] * work.need[GPUS, w]


@inner
def quota_allows(world: Session, w: int, c: int, gpus: int, turn: int) -> bool:
    tree, work, queues, users = world.tree, world.work, world.queues, world.users
    if (
        full_queue(tree, work, queues, w) >= 0
        or user_limit(tree, work, queues, users, w, gpus) >= 0
    ):
        return False
    return share_allows(world, w, c, gpus, turn)


@inner
def held_against(tree: Tree, work: Work, due: Flags, w: int) -> int:
    """The queue inside whose share ``w`` starts before anybody borrows: its own, or for throughput, and for
    who is due under a promise, that which gives out by merit.
    """
    q, is_due = work.queue[w], work.phase[w] == PENDING and due[w]
    return int(q if tree.sharing.rule[q] == codes.PROMISE and not is_due else sharer(tree, q))


@inner
def share_allows(world: Session, w: int, c: int, gpus: int, turn: int) -> bool:
    """Limits and nominal allow ``gpus`` more, and at no more than ``turn`` levels they pass the share."""
    quotas, rules, q = world.quotas, world.rules, world.work.queue[w]
    tree, queues, division = world.tree, world.queues, world.division
    over = levels_over(tree, queues, division, q, c, gpus)
    top = held_against(tree, world.work, world.ordering.merit.due, w)
    beside = over if top == q else levels_over(tree, queues, division, top, c, gpus)
    if beside > turn or over_limit(tree, quotas, rules, queues, q, c, gpus) >= 0:
        return False
    if over > 0 and takes_kept(world, q, c, gpus) >= 0:
        return False
    fixed = not world.ranks.preemptible[world.work.priority[w]]
    return not fixed or over_nominal(tree, quotas, division, queues, q, c, gpus) < 0


@inner
def passes_nominal(world: Session, w: int, c: int) -> bool:
    """Whether ``w`` cannot be preempted and would pass its nominal: nobody who leaves changes that."""
    tree, quotas, work, division = world.tree, world.quotas, world.work, world.division
    queues = world.queues
    if world.ranks.preemptible[work.priority[w]]:
        return False
    return bool(
        over_nominal(tree, quotas, division, queues, work.queue[w], c, need_of(work, w)) >= 0
    )


@inner
def only_reserved(world: Session, w: int, c: int) -> bool:
    """Free GPUs would do, were they not kept for another: no reason to displace the own queue's work."""
    work = world.work
    if not quota_allows(world, w, c, need_of(work, w), world.tree.depth[work.queue[w]]):
        return False
    return bool(all_fit(world, w, c, work.least[w], BACKFILL))


@inner
def fills_what_leaves(
    tree: Tree, quotas: Quotas, queues: Queues, q: int, c: int, gpus: int
) -> bool:
    """A limit holds at every moment: what leaves counts in it until it is gone."""
    while q > 0:
        if queues.usage.held[c, q] + queues.usage.leaving[c, q] + gpus > quotas.cap[c, q]:
            return True
        q = tree.parent[q]
    return False


@inner
def start_or_promise(world: Session, w: int, c: int, members: int) -> None:
    """The claimed seats are taken if they are free at this moment and no limit is in the way."""
    work, gpus = world.work, members * world.work.need[GPUS, w]
    late = fills_what_leaves(world.tree, world.quotas, world.queues, work.queue[w], c, gpus)
    if not late and is_free(world.room, work, world.seats, w, members):
        admit(world, w, c, members)
    else:
        promise(world, w, c, members)
