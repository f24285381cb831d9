"""Work that leaves whatever others need: that of drained queues, and stale gangs."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.state.input import gpus_of, work_lost
from scheduling.engine.state.order import SHORT
from scheduling.engine.state.session import World
from scheduling.engine.statement.lines import quote
from scheduling.engine.statement.operations import evict
from scheduling.engine.statement.statement import release


@inner
def evict_the_unwanted(world: World) -> None:
    """Step 1. Draining spares nobody; a gang is stale below its least members past the grace."""
    work, rules, line = world.work, world.rules, world.line
    if line.count[SHORT] == 0 and not _drains(world):
        return
    for k in range(line.runs[2], line.count[2]):
        w = line.running[k]
        if work.leaving[w]:
            continue
        short = work.members[w] < work.least[w]
        stale = short and rules.now >= work.stale[w] + rules.grace
        if world.tree.stop[work.queue[w]] == codes.DRAINS:
            evict(world, w, codes.DRAINED)
        elif stale:
            evict(world, w, codes.STALE_GANG)
        else:
            continue
        release(world, w)
        world.out.lost[w] = work_lost(work, w, work.members[w], rules.now)
        age = rules.now - work.stale[w] if stale else 0.0
        quote(world.out, w, work.queue[w], work.members[w], work.least[w], age, gpus_of(work, w))


@once
def _drains(world: World) -> bool:
    for q in range(world.tree.stop.size):
        if world.tree.stop[q] == codes.DRAINS:
            return True
    return False
