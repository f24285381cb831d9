"""What queues and users held of late: an average in which older time counts less (DESIGN 3.1 step 4).

u(now) = u(before) d + held (1 - d) with d = 2^(-span / half-life): of a queue as a share of the class's
capacity, of a user in a leaf as milli-GPU. The engine is shown it in simulated time as in real time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduling.engine import Frame
from scheduling.engine.compile.kernel import kernel
from scheduling.engine.compile.structs import Floats, Ints, declare


@declare
class Usage(NamedTuple):
    """``by_queue`` [class, queue] and ``by_user`` [pair of leaf and user] are the averages."""

    by_queue: Floats
    by_user: Floats
    gpus: Ints  # [class, queue] now
    held_by: Ints  # [pair]
    capacity: Ints  # [class]
    at: Floats  # [1] to when they are counted
    half_life: float


def no_usage(frame: Frame) -> Usage:
    """Nobody has held anything on ``frame`` before its ``now``."""
    table, pairs = frame.quotas.nominal.shape, frame.users.usage.size
    return Usage(
        by_queue=np.zeros(table),
        by_user=np.zeros(pairs),
        gpus=np.zeros(table, np.int64),
        held_by=np.zeros(pairs, np.int64),
        capacity=frame.nodes.capacity,
        at=np.array([float(frame.now)]),
        half_life=max(1.0, frame.rules.half_life),
    )


@kernel
def count_up(usage: Any, world: Any, now: float) -> None:
    """Average up to ``now`` what was held since the last time, and show it to the engine."""
    if now <= usage.at[0]:
        return
    decay = 2.0 ** ((usage.at[0] - now) / usage.half_life)
    usage.at[0] = now
    for c in range(usage.by_queue.shape[0]):
        for q in range(usage.by_queue.shape[1]):
            share = usage.gpus[c, q] / max(1, usage.capacity[c])
            usage.by_queue[c, q] = usage.by_queue[c, q] * decay + share * (1.0 - decay)
            world.quotas.usage[c, q] = usage.by_queue[c, q]
    for pair in range(usage.by_user.size):
        usage.by_user[pair] = usage.by_user[pair] * decay + usage.held_by[pair] * (1.0 - decay)
        world.users.usage[pair] = int(usage.by_user[pair] + 0.5)


@kernel
def note_held(usage: Any, world: Any, pair: int, q: int, c: int, gpus: int, now: float) -> None:
    """The user and the leaf ``q`` hold ``gpus`` more of class ``c`` (negative: less) from ``now`` on."""
    count_up(usage, world, now)
    usage.held_by[pair] += gpus
    while q >= 0:
        usage.gpus[c, q] += gpus
        q = world.tree.parent[q]
