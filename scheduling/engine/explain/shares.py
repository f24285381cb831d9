"""The division as people and pages read it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduling.engine.compile.structs import Floats, Ints, as_struct
from scheduling.engine.division.divide import potentials
from scheduling.engine.model import UNLIMITED, Share, Step, StepKind
from scheduling.engine.snapshot.frame import Frame
from scheduling.engine.state.queues import Division
from scheduling.engine.state.units import GPUS, PENDING, RUNNING

Shares = Mapping[str, Mapping[str, Share]]


def read_shares(frame: Frame) -> Shares:
    """queue -> class -> share of a frame that was divided; the root is under the empty name."""
    potential = np.zeros_like(frame.buffers.division.fair)
    scratch = Division._make(table.copy() for table in frame.buffers.division)
    potentials(frame.world, as_struct(scratch), potential)
    usage, waiting = _sum_up(frame)
    classes = list(enumerate(frame.class_names))
    return {
        queue: {name: _share(frame, c, i, usage, waiting, potential) for c, name in classes}
        for i, queue in enumerate(frame.queue_names)
    }


def _share(frame: Frame, c: int, i: int, usage: Ints, waiting: Ints, potential: Floats) -> Share:
    q, division = frame.quotas, frame.buffers.division
    leaf = frame.tree.kid_start[i] == frame.tree.kid_start[i + 1] and i > 0
    divided = frame.buffers.queues.redivision.divided
    demand = min(divided[c, i], q.limit[c, i]) if leaf else division.demand[c, i]
    kept_back = division.capacity[c, i] - division.fair[c, i]
    if i == 0:
        kept_back = division.kept_below[c, 0]
    return Share(
        fair_share=_exact(division.fair[c, i]),
        potential=_exact(potential[c, i]),
        allocated=int(usage[c, i]),
        nominal=int(q.nominal[c, i]),
        limit=None if q.limit[c, i] >= UNLIMITED else int(q.limit[c, i]),
        demand=int(demand),
        pending=int(waiting[c, i]),
        guaranteed=_exact(division.guaranteed[c, i]),
        lent=max(0, int(q.nominal[c, i] - demand - round(kept_back))) if i else 0,
        kept_back=round(kept_back),
        oversubscribed=bool(division.short[c, i]),
        steps=steps_of(frame, c, i) if i else (),
    )


def steps_of(frame: Frame, c: int, q: int) -> tuple[Step, ...]:
    """How the fair share of queue ``q`` came about: the steps' amounts sum to it.

    Read from what the division wrote down. Steps of nothing are left out.
    """
    division, nominal = frame.buffers.division, float(frame.quotas.nominal[c, q])
    kept_back = float(division.kept_back[c, q])
    owed = min(nominal - kept_back, float(division.demand[c, q]))
    n, u, w = (float(table[c, q]) for table in (division.norm, division.usage, division.ratio))
    tier = int(frame.tree.tier[q])
    steps = (
        Step(StepKind.NOMINAL, nominal),
        Step(StepKind.LENT, owed + kept_back - nominal),
        Step(StepKind.KEPT_BACK, -kept_back),
        Step(StepKind.RATIONED, float(division.guaranteed[c, q]) - owed),
        Step(StepKind.SPARE, float(division.spare[c, q]), n, u, w, tier),
        Step(StepKind.REMAINDER, float(division.remainder[c, q]), n, u, w, tier),
    )
    return tuple(step for step in steps if step.amount)


def _sum_up(frame: Frame) -> tuple[Ints, Ints]:
    """What each subtree holds and, beyond it, asks for, [class, queue]. Work that leaves holds on;
    a workload that accepts several classes asks in each of them.
    """
    work, parent = frame.work, frame.tree.parent
    usage = np.zeros(frame.quotas.nominal.shape, np.int64)
    waiting = np.zeros_like(usage)
    runs = np.flatnonzero((work.phase == RUNNING) & (work.queue > 0))
    gpus = work.need[GPUS, runs] * work.members[runs]
    np.add.at(usage, (work.gpu_class[runs], work.queue[runs]), gpus)
    waits = (work.phase == PENDING) & (work.queue > 0) & ~work.on_hold
    for wish in work.wish:
        asks = np.flatnonzero(waits & (wish >= 0))
        np.add.at(waiting, (wish[asks], work.queue[asks]), work.need[GPUS, asks] * work.most[asks])
    for i in range(parent.size - 1, 0, -1):
        usage[:, parent[i]] += usage[:, i]
        waiting[:, parent[i]] += waiting[:, i]
    return usage, waiting


def _exact(milli: float) -> float:
    """Without the last binary digits of the arithmetic: to a millionth of a milli-GPU."""
    return round(float(milli), 6)
