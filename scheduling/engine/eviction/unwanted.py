"""Work that leaves whatever others need: that of drained queues, and stale gangs."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.reasons.figures import DRAINING, SHORT_GANG
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Rules, Tree, Work, gpus_of, work_lost
from scheduling.engine.state.session import Session
from scheduling.engine.statement.operations import evict
from scheduling.engine.statement.statement import release


@inner
def evict_the_unwanted(world: Session) -> None:
    """Step 1. Draining spares nobody; a gang is stale below its least members past the grace."""
    work, rules, ordering = world.work, world.rules, world.ordering
    if ordering.running.below_minimum == 0 and not _drains(world.tree):
        return
    for k in range(ordering.running.queue_begin[2], ordering.running.size[0]):
        w = ordering.running.slot[k]
        if work.leaving[w]:
            continue
        short = work.members[w] < work.least[w]
        stale = short and rules.now >= work.stale[w] + rules.grace
        if world.tree.stop[work.queue[w]] == codes.DRAINS:
            evict(world, w, codes.DRAINED)
            world.out.rule[w] = codes.DRAINING
        elif stale:
            evict(world, w, codes.STALE_GANG)
            world.out.rule[w] = codes.STALE
        else:
            continue
        release(world, w)
        world.out.lost[w] = work_lost(work, w, work.members[w], rules.now)
        _quote(work, rules, world.out, w)


@inner
def _drains(tree: Tree) -> bool:
    for q in range(tree.stop.size):
        if tree.stop[q] == codes.DRAINS:
            return True
    return False


@inner
def _quote(work: Work, rules: Rules, out: Decisions, w: int) -> None:
    """How many members of ``w`` run, since when these are too few, and what that gives back."""
    figures, gpus = out.figures, gpus_of(work, w)
    out.blame[w] = work.queue[w]
    if out.reason[w] == codes.DRAINED:
        figures[w, DRAINING.members], figures[w, DRAINING.gives_back] = work.members[w], gpus
        figures[w, DRAINING.min_members] = work.least[w]
        return
    figures[w, SHORT_GANG.members], figures[w, SHORT_GANG.gives_back] = work.members[w], gpus
    figures[w, SHORT_GANG.min_members] = work.least[w]
    figures[w, SHORT_GANG.stale_s] = rules.now - work.stale[w]
