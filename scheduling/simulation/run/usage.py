"""What queues and users held of late: an average in which older time counts less (DESIGN 3.1 step 4).

u(now) = u(before) d + held (1 - d) with d = 2^(-span / half-life): of a queue as a share of the class's
capacity, of a user in a leaf as milli-GPU. The engine is shown it in simulated time as in real time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from scheduling.engine import Frame, Phase, Queue
from scheduling.engine.compile.kernel import kernel
from scheduling.engine.compile.structs import Floats, Ints, as_struct, declare

from .jobs import Job


@declare
class Usage(NamedTuple):
    """``by_queue`` [class, queue] and ``by_user`` [pair of leaf and user] are the averages."""

    by_queue: Floats
    by_user: Floats
    held: Ints  # [class, queue] now
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
        held=np.zeros(table, np.int64),
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
            share = usage.held[c, q] / max(1, usage.capacity[c])
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
        usage.held[c, q] += gpus
        q = world.tree.parent[q]


Holding = tuple[int, int, int, int]
"""Pair of leaf and user, leaf, class, milli-GPU."""


class Tally:
    """The usage of one simulation whose workloads come one by one."""

    def __init__(self, frame: Frame) -> None:
        """``frame`` numbers queues, classes and users; its world is shown what was used."""
        self._frame = frame
        self._usage = no_usage(frame)
        self._struct = as_struct(self._usage)
        self._seen: dict[int, Holding] = {}

    def see(self, job: Job, now: float) -> None:
        """The job starts, stops or goes on as it does from ``now`` on."""
        was, has = self._seen.get(job.number), self._holding(job)
        if was != has:
            self.forget(job, now)
            if has is not None:
                self._seen[job.number] = has
                self._note(has, 1, now)

    def forget(self, job: Job, now: float) -> None:
        """The job holds nothing any more."""
        was = self._seen.pop(job.number, None)
        if was is not None:
            self._note(was, -1, now)

    def _holding(self, job: Job) -> Holding | None:
        work = job.workload
        if work.phase is not Phase.RUNNING:
            return None
        queue = self._frame.queue_names.index(work.queue)
        pair = self._frame.pair(queue, work.user)
        gpu_class = self._frame.class_names.index(work.gpu_class or "")
        return pair, queue, gpu_class, job.run.gpus

    def _note(self, holding: Holding, sign: int, now: float) -> None:
        pair, queue, gpu_class, gpus = holding
        if pair >= self._usage.by_user.size:
            self._grow()
        world = self._frame.world
        note_held(self._struct, world, pair, queue, gpu_class, sign * gpus, float(now))

    def count_up(self, now: float) -> None:
        count_up(self._struct, self._frame.world, float(now))

    def shown(self, queues: Iterable[Queue]) -> tuple[Queue, ...]:
        """The queues with what they and their users used."""
        frame = self._frame
        number = {name: i for i, name in enumerate(frame.queue_names)}
        used = self._usage.by_queue
        by_user: dict[int, dict[str, int]] = {}
        for (queue, user), pair in frame.pairs.items():
            if pair < self._usage.by_user.size and (gpus := int(self._usage.by_user[pair] + 0.5)):
                by_user.setdefault(queue, {})[user] = gpus
        return tuple(
            replace(
                queue,
                usage=dict(
                    zip(frame.class_names, used[:, number[queue.name]].tolist(), strict=True)
                ),
                user_usage=by_user.get(number[queue.name], {}),
            )
            for queue in queues
        )

    def _grow(self) -> None:
        more = self._frame.users.usage.size - self._usage.by_user.size
        self._usage = self._usage._replace(
            by_user=np.append(self._usage.by_user, np.zeros(more)),
            held_by=np.append(self._usage.held_by, np.zeros(more, np.int64)),
        )
        self._struct = as_struct(self._usage)
