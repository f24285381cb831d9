"""What queues and users held of late, of workloads that come one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from scheduling.engine import Frame, Phase, Queue
from scheduling.engine.compile.structs import as_struct
from scheduling.simulation.run.usage import count_up, no_usage, note_held

from .jobs import Job

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
