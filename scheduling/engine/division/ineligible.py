"""Work that cannot start whatever happens: what is said of it."""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.compile.kernel import inner
from scheduling.engine.placement.node_room import may_use
from scheduling.engine.quota.limits import used_hours
from scheduling.engine.quota.standing import spent_hours
from scheduling.engine.reasons.figures import HOURS, NEVER
from scheduling.engine.state.input import Nodes, Work
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS


@inner
def refuse_for_hours(world: Session, w: int, c: int) -> None:
    """``w`` cannot start before the next period: the GPU-hours of class ``c`` are spent."""
    rules = world.rules
    x = spent_hours(world.tree, world.quotas, rules, world.queues, world.work.queue[w], c)
    quotas, out = world.quotas, world.out
    out.action[w], out.reason[w], out.gpu_class[w] = codes.WAIT, codes.HOURS_SPENT, c
    out.blame[w] = x
    out.figures[w, HOURS.used_gpu_hours] = used_hours(quotas, rules, x, c)
    out.figures[w, HOURS.budget_gpu_hours] = quotas.budget_hours[c, x]
    out.until[w] = quotas.period_ends[c, x] if quotas.period_ends[c, x] > rules.now else 0.0


@inner
def refuse_forever(world: Session, w: int, c: int, x: int) -> None:
    """``w`` can never start: queue ``x`` allows too little, or (-1) the nodes are too few or small."""
    work, need = world.work, world.work.least[w] * world.work.need[GPUS, w]
    out = world.out
    out.action[w], out.reason[w], out.gpu_class[w] = codes.WAIT, codes.NEVER_FITS, c
    most = world.quotas.cap[c, x] if x >= 0 else world.nodes.capacity[c]
    out.blame[w] = x
    out.figures[w, NEVER.needs], out.figures[w, NEVER.most] = need, most
    out.figures[w, NEVER.min_members] = work.least[w]
    out.figures[w, NEVER.per_member] = work.need[GPUS, w]
    some, every = count_nodes(world.nodes, work, world.room, w, c)
    if x < 0 and some < every:
        out.figures[w, NEVER.nodes_allowed] = some
        out.figures[w, NEVER.nodes_in_class] = every


@inner
def count_nodes(nodes: Nodes, work: Work, room: NodeRoom, w: int, c: int) -> tuple[int, int]:
    """How many nodes of class ``c`` there are that ``w`` may use, and how many in all."""
    some = 0
    for i in range(nodes.class_start[c], nodes.class_start[c + 1]):
        some += int(may_use(room, work, w, nodes.of_class[i]))
    return some, nodes.class_start[c + 1] - nodes.class_start[c]
