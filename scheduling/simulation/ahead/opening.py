"""A moment at which work runs and waits, from which a life goes on in the compiled loop."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scheduling.engine import Frame, encode
from scheduling.engine.compile.structs import Flags, Ints
from scheduling.engine.model import Phase, Snapshot, Workload
from scheduling.engine.snapshot.describing import describe
from scheduling.engine.state.input import Work
from scheduling.engine.state.session import empty_work
from scheduling.engine.state.units import GPUS, PENDING, RUNNING
from scheduling.simulation.loop.life import NEVER, Jobs, new_jobs
from scheduling.simulation.run.usage import Usage

LEAVE_S = 30
"""How long a victim's pods take to go, where nobody knows better."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Open work at ``frame.now``; every life gets a twin of ``frame``. Seconds count from now.

    ``since`` and ``warm`` are when the run and its useful time began, before now; ``checkpoint`` is 0
    where none is taken. Work that waits runs for ``restart`` seconds longer if it was evicted before.
    """

    frame: Frame
    slots: Ints
    since: Ints
    warm: Ints
    checkpoint: Ints
    restart: Ints
    evicted: Flags

    @property
    def phase(self) -> Ints:
        return self.frame.work.phase[self.slots]

    @property
    def runs(self) -> Flags:
        return (self.phase == RUNNING) & ~self.frame.work.leaving[self.slots]

    @property
    def waits(self) -> Flags:
        return self.phase == PENDING

    @property
    def members(self) -> Ints:
        return np.maximum(1, self.frame.work.members[self.slots])

    @property
    def most(self) -> Ints:
        return self.frame.work.most[self.slots]

    @property
    def gpus(self) -> Ints:
        """Milli-GPU of the gang at its smallest."""
        work = self.frame.work
        return work.need[GPUS, self.slots] * work.least[self.slots]

    @property
    def names(self) -> list[str]:
        return [self.frame.slot_names.get(slot, "") for slot in self.slots.tolist()]


def open_snapshot(snapshot: Snapshot, checkpoints: Mapping[str, int] | None = None) -> Opening:
    """``checkpoints``: seconds from one checkpoint to the next by name of the workload.

    What leaves and was never evicted has ended already: its GPUs count as free. Raises SnapshotError.
    """
    staying = tuple(w for w in snapshot.workloads if not _is_gone(w))
    frame = encode(replace(snapshot, workloads=staying))
    work = {w.name: w for w in staying}
    slots = np.array(sorted(frame.slot_names), np.int64)
    rows = [work[frame.slot_names[slot]] for slot in slots.tolist()]
    now = snapshot.now
    since = [-_whole((now - (w.started or now)).total_seconds()) for w in rows]
    steps = checkpoints or {}
    return Opening(
        frame=frame,
        slots=slots,
        since=np.array(since, np.int64),
        warm=np.array(since, np.int64),
        checkpoint=np.array([steps.get(w.name, 0) for w in rows], np.int64),
        restart=np.array([w.restart_cost_s for w in rows], np.int64),
        evicted=np.array([w.evictions > 0 for w in rows], np.bool_),
    )


def _is_gone(work: Workload) -> bool:
    return work.phase is Phase.RUNNING and work.leaving and not work.evictions


def _whole(seconds: float) -> int:
    return max(0, int(seconds))


def twin(frame: Frame) -> Frame:
    """A frame that may be changed without changing ``frame``, which nobody has planned on."""
    other = copy.copy(frame)
    for name in ("work", "holds", "pool", "users", "quotas"):
        table = getattr(frame, name)
        setattr(other, name, type(table)(*(part.copy() for part in table)))
    other.pairs, other.slot_names, other.shapes = dict(frame.pairs), {}, dict(frame.shapes)
    other.source = None
    other.forget()
    return other


def usage_of(frame: Frame) -> Usage:
    """What was used up to the frame's ``now``, and who holds what."""
    work = frame.work
    usage = np.zeros(frame.quotas.nominal.shape, np.int64)
    held_by = np.zeros(frame.users.usage.size, np.int64)
    for slot in np.flatnonzero((work.phase == RUNNING) & (work.queue >= 0)).tolist():
        gpus = int(work.need[GPUS, slot] * work.members[slot])
        held_by[work.user[slot]] += gpus
        queue = int(work.queue[slot])
        while queue >= 0:
            usage[work.gpu_class[slot], queue] += gpus
            queue = int(frame.tree.parent[queue])
    return Usage(
        by_queue=frame.quotas.usage.copy(),
        by_user=frame.users.usage.astype(np.float64),
        gpus=usage,
        held_by=held_by,
        capacity=frame.nodes.capacity,
        at=np.array([float(frame.now)]),
        half_life=max(1.0, frame.rules.half_life),
    )


def picked(cast: Work, which: Ints) -> Work:
    """Those rows of a table of work, in that order."""
    columns: dict[str, Any] = cast._asdict()
    return Work(**{n: np.ascontiguousarray(table[..., which]) for n, table in columns.items()})


def described(frame: Frame, rows: Sequence[Mapping[str, Any]], restart_s: float) -> Work:
    """A table of work that ``frame`` does not hold yet, a row for each of ``rows`` (a Scribe's columns)."""
    wishes = max([1, *(len(row["classes"]) for row in rows)])
    cast = empty_work(len(rows), wishes, frame.work.need.shape[0])
    for i, row in enumerate(rows):
        describe(frame, cast, i, **row)
    cast.restart[:] = restart_s
    return cast


@dataclass(frozen=True, slots=True)
class Newcomers:
    """Work still to come, in order of arrival: ``cast`` describes it, seconds count from now."""

    cast: Work
    submit: Ints
    duration: Ints
    checkpoint: Ints
    restart: Ints

    @classmethod
    def nobody(cls) -> Newcomers:
        empty = np.zeros(0, np.int64)
        return cls(empty_work(0, 1), empty, empty, empty, empty)

    def __len__(self) -> int:
        return int(self.submit.size)


def jobs_of(opening: Opening, rest_s: Ints, coming: Newcomers) -> tuple[Jobs, Work]:
    """The tables of a life: who is open first, then who comes. ``rest_s`` is what each open one still
    runs with the members it has, or with all once it starts."""
    count, runs = opening.slots.size, opening.runs
    zeros = np.zeros(count, np.int64)
    most = np.concatenate([opening.most, coming.cast.most])
    jobs = new_jobs(
        np.concatenate([zeros - 1, coming.submit]),
        np.concatenate([rest_s, coming.duration]),
        np.concatenate([opening.checkpoint, coming.checkpoint]),
        np.concatenate([opening.restart, coming.restart]),
        most,
    )
    again_s = np.where(opening.evicted, opening.restart, 0)
    left = np.where(
        runs, (rest_s - opening.warm) * opening.members, (rest_s + again_s) * opening.most
    )
    jobs.left[:count] = left
    jobs.slot[:count] = opening.slots
    jobs.since[:count], jobs.warm[:count] = opening.since, opening.warm
    jobs.first[:count][~opening.waits] = 0
    jobs.free_at[:count][runs] = rest_s[runs]
    jobs.free_at[:count][~runs & ~opening.waits] = LEAVE_S
    step = opening.checkpoint
    with_steps = runs & (step > 0)
    done = -opening.warm[with_steps] // step[with_steps] + 1
    jobs.saves[:count] = NEVER
    jobs.saves[:count][with_steps] = opening.warm[with_steps] + done * step[with_steps]
    return jobs, _cast(opening, coming)


def _cast(opening: Opening, coming: Newcomers) -> Work:
    """Newcomers behind as many rows as there are open ones, which the loop reads nothing of."""
    count = opening.slots.size
    wishes = max(coming.cast.wish.shape[0], opening.frame.work.wish.shape[0])
    cast = empty_work(count + len(coming), wishes, opening.frame.work.need.shape[0])
    for name, table in coming.cast._asdict().items():
        target: Any = getattr(cast, name)
        if table.ndim > 1:
            target[:, count:] = -1 if name == "wish" else 0
            target[: len(table), count:] = table
        else:
            target[count:] = table
    cast.elastic[:count] = opening.frame.work.elastic[opening.slots]
    return cast
