"""KAI-Scheduler's division and order (its plugin ``proportion``) and its reclaim, for queues of equal
priority.

*Division* (``resource_division.go``): each queue gets what it asks for up to its deserved quota; what is left
goes by weight to whoever asks for more, in whole GPUs, then one by one to whom rounding down took most.
*Order* (``queue_order.go``): first who is not over its fair share, then who stays inside its deserved quota
with its next work, then the least share of what it may have, with that work. Work that fits starts; work that
does not keeps nobody waiting.

*Reclaim* (``actions/reclaim``, ``reclaimable.go``): who stays within its fair share may evict. The last queue
of the order loses what it started last, as long as it holds more than its fair share, or more than it
deserves when the newcomer stays inside its own deserved quota. Victims without whom it fits as well are
spared. Work is not moved to make room (consolidation), and the history of use does not count, as is KAI's
default.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.simulation.traces import Trace
from workshop.simulator.result import Replay

from .costs import Costs
from .queues import NEVER
from .sharing import (
    Quotas,
    World,
    advance,
    evict_picked,
    fits,
    head,
    keep_all,
    pick,
    played,
    spare,
    start,
    youngest,
)


def replay_kai(trace: Trace, nodes: int, costs: Costs, quotas: Quotas | None = None) -> Replay:
    """All jobs on ``nodes`` pooled nodes; without ``quotas`` those of the static partition. Raises
    TooLargeError."""
    return played(trace, nodes, costs, quotas, live)


@kernel
def live(world: World) -> None:
    fair = np.zeros(len(world.used))
    now = advance(world)
    while now != NEVER:
        while session(now, fair, world):
            pass
        now = advance(world)


@inner
def session(now: int, fair: Floats, world: World) -> bool:
    """Divides, starts who fits, lets the others reclaim; whether anybody was evicted, who may start now."""
    floor = world.floor
    deserved = world.quotas.nominal / 1000.0
    divide(len(floor.free) * floor.per_node, deserved, world.quotas.weight, world.demand, fair)
    world.lines.parked[:] = 0
    queue = next_queue(fair, world)
    while queue >= 0:
        job = head(queue, world.lines)
        if not start(job, now, world):
            world.lines.parked[world.lines.bucket[job]] = 1
        queue = next_queue(fair, world)
    return reclaim(now, fair, world)


@kernel
def divide(total: float, deserved: Floats, weight: Floats, demand: Ints, fair: Floats) -> None:
    """Fills ``fair``: GPUs by queue, which is never more than it asks for."""
    fair[:] = np.minimum(deserved, demand)
    left = total - fair.sum()
    rounded_off = np.zeros(len(fair))
    again = True
    while again and left > 0:
        again, to_give = False, left
        wants = demand > fair
        weights = weight[wants].sum()
        if weights == 0:
            break
        for queue in range(len(fair)):
            if not wants[queue] or weight[queue] == 0:
                continue
            part, more = to_give * (weight[queue] / weights), demand[queue] - fair[queue]
            given = more if more <= part else np.floor(part)
            if more <= part or part > given:
                rounded_off[queue] = 0.0 if more <= part else part - given
            fair[queue] += given
            left -= given
            again = again or more < part
    hand_out(left, fair, rounded_off)


@inner
def hand_out(left: float, fair: Floats, rounded_off: Floats) -> None:
    """What rounding left over: a GPU each, to whom it took most."""
    while left > 0:
        queue = int(np.argmax(rounded_off))
        if rounded_off[queue] == 0:
            return
        fair[queue] += min(1.0, left)
        left -= min(1.0, left)
        rounded_off[queue] = 0.0


@inner
def next_queue(fair: Floats, world: World) -> int:
    """The first in order of the queues whose line has a head, or -1."""
    best, first = -1, order_of(0, 0, 0, 0, fair, world)
    for queue in range(len(fair)):
        job = head(queue, world.lines)
        if job < 0:
            continue
        used = world.used[queue]
        with_it = used + world.work.gpus[job]
        its = order_of(queue, used, with_it, with_it, fair, world)
        if best < 0 or its < first:
            best, first = queue, its
    return best


@inner
def order_of(
    queue: int, holds: int, wants: int, would_hold: int, fair: Floats, world: World
) -> tuple[float, float, float, float, float, float]:
    """What queues are ordered by, lowest first, from GPUs: whether it ``holds`` more than its fair share;
    whether it ``wants`` more than it deserves; of what it may have, what it ``would_hold`` and ``holds``;
    what it may have; its number.
    """
    deserved = world.quotas.nominal[queue] / 1000.0
    may_have = max(deserved, fair[queue])
    over_fair = 1.0 if holds > fair[queue] else 0.0
    over_quota = 1.0 if wants > deserved else 0.0
    would, does = of_share(would_hold, may_have), of_share(holds, may_have)
    return over_fair, over_quota, would, does, may_have, float(queue)


@inner
def of_share(gpus: int, may_have: float) -> float:
    """A queue that may have nothing and holds something is put behind all others."""
    return gpus / may_have if may_have > 0 else gpus * 1000.0


@inner
def reclaim(now: int, fair: Floats, world: World) -> bool:
    """The first in order who can; whether anybody was evicted."""
    world.lines.parked[:] = 0
    queue = next_queue(fair, world)
    while queue >= 0:
        job = head(queue, world.lines)
        if make_room(job, now, fair, world):
            evict_picked(now, world)
            start(job, now, world)
            return True
        world.lines.parked[world.lines.bucket[job]] = 1
        queue = next_queue(fair, world)
    return False


@inner
def make_room(job: int, now: int, fair: Floats, world: World) -> bool:
    """Picks who leaves so that ``job`` fits; whether that is possible (else nobody is picked)."""
    mine = world.queue[job]
    after = world.used[mine] + world.work.gpus[job]
    if after > fair[mine]:
        return False
    starved = after * 1000 <= world.quotas.nominal[mine]
    below = np.full(len(world.used), world.counts[0])
    below[mine] = 0
    usage = world.used.copy()
    at = last_in_order(below, usage, now, starved, fair, world)
    while at >= 0:
        pick(world.runs[at], world)
        if fits(job, world):
            spare(job, world)
            return True
        at = last_in_order(below, usage, now, starved, fair, world)
    keep_all(world)
    return False


@inner
def last_in_order(
    below: Ints, usage: Ints, now: int, starved: bool, fair: Floats, world: World
) -> int:
    """Where in ``runs`` the next victim stands: what the last queue in order started last; or -1."""
    best, last = -1, order_of(0, 0, 0, 0, fair, world)
    for queue in range(len(below)):
        if not can_lose(queue, starved, fair, world):
            continue
        at = youngest(queue, below[queue], now, world)
        below[queue] = at + 1
        if at < 0:
            continue
        holds = usage[queue]
        without = world.used[queue] - world.work.gpus[world.runs[at]]
        its = order_of(queue, holds, holds, without, fair, world)
        if best < 0 or its > last:
            best, last = at, its
    return best


@inner
def can_lose(queue: int, starved: bool, fair: Floats, world: World) -> bool:
    """What it holds without those who are picked is more than it may have, or than it deserves."""
    deserved = world.quotas.nominal[queue] / 1000.0
    return world.used[queue] > (deserved if starved else max(deserved, fair[queue]))
