"""Work that cannot start whatever happens: what is said of it."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.node_room import may_use
from scheduling.engine.quota.limits import spent_hours, used_hours
from scheduling.engine.state.session import World
from scheduling.engine.state.units import GPUS
from scheduling.engine.statement.lines import quote


@inner
def blame_hours(world: World, w: int, c: int) -> None:
    """``w`` cannot start before the next period: the GPU-hours of class ``c`` are spent."""
    x = spent_hours(world, world.work.queue[w], c)
    quotas, out = world.quotas, world.out
    out.action[w], out.reason[w], out.gpu_class[w] = codes.WAIT, codes.HOURS_SPENT, c
    quote(out, w, x, used_hours(world, x, c), quotas.budget_hours[c, x], 0.0, 0.0)
    out.until[w] = quotas.period_ends[c, x] if quotas.period_ends[c, x] > world.rules.now else 0.0


@inner
def never(world: World, w: int, c: int, x: int) -> None:
    """``w`` can never start: queue ``x`` allows too little, or (-1) the nodes are too few or small."""
    need = world.work.least[w] * world.work.need[GPUS, w]
    out = world.out
    out.action[w], out.reason[w], out.gpu_class[w] = codes.WAIT, codes.NEVER_FITS, c
    most = world.quotas.cap[c, x] if x >= 0 else world.nodes.capacity[c]
    quote(out, w, x, need, most, world.work.least[w], world.work.need[GPUS, w])
    if x < 0:
        count_nodes(world, w, c)


@inner
def count_nodes(world: World, w: int, c: int) -> bool:
    """Whether ``w`` may use some nodes of class ``c`` only: quotes how many, of how many."""
    nodes, many = world.nodes, 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        many += int(may_use(world.room, world.work, w, nodes.of_class[i]))
    every = nodes.class_start[c + 1] - nodes.class_start[c]
    if many < every:
        world.out.figures[w, 4], world.out.figures[w, 5] = many, every
    return bool(many < every)
