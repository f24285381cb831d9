"""Rivals that the engine cannot be, on a past period of a cluster: each GPU class by itself, nodes pooled.

They know no queues, shares or limits: every job asks for the first of its classes that has nodes, and takes
whole GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.model import MILLI, Snapshot
from scheduling.simulation.rivals.costs import USUAL
from scheduling.simulation.rivals.registry import Rule
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.traces import Trace

from .period import Period

MOST_JOBS = 4000
"""Of a period: the native scheduler tries pods one by one."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one class: as many of its commonest size as hold its GPUs."""

    nodes: int
    gpus_per_node: int

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node


def pools_of(world: Snapshot) -> dict[str, Pool]:
    """By class; of nodes that are ready and dedicated to nobody."""
    sizes: dict[str, list[int]] = {}
    for node in world.nodes:
        whole = (node.gpus - node.foreign_gpus) // MILLI
        if node.ready and not node.dedicated and whole > 0:
            sizes.setdefault(node.gpu_class, []).append(whole)
    found = {}
    for name, each in sizes.items():
        (usual, _), *_ = Counter(each).most_common(1)
        found[name] = Pool(sum(each) // usual, usual)
    return found


def can_live(world: Snapshot, period: Period) -> bool:
    """Whether each job fits on its class, and they are not too many."""
    pools = pools_of(world)
    if not pools or len(period.jobs) > MOST_JOBS:
        return False
    return all(gpus_of(job) <= pools[_class_of(job, pools)].gpus for job in period.jobs)


def gpus_of(job: Submission) -> int:
    """Whole GPUs of all its members: a part of one takes one."""
    return -(-job.workload.gpus * job.workload.members.max // MILLI)


def _class_of(job: Submission, pools: dict[str, Pool]) -> str:
    """The first that it names and that has nodes, else the one with most GPUs."""
    named = (name for name in job.workload.gpu_classes if name in pools)
    return next(named, max(pools, key=lambda name: (pools[name].gpus, name)))


def waited_s(world: Snapshot, period: Period, rule: Rule) -> Floats:
    """By job: seconds that were no run time, by the end of the period at most. Evictions, where the rule
    makes any, lose no work. Raises TooLargeError where ``can_live`` does not hold.
    """
    pools = pools_of(world)
    classes = [_class_of(job, pools) for job in period.jobs]
    found = np.zeros(len(classes))
    for name, pool in sorted(pools.items()):
        which = [i for i, one in enumerate(classes) if one == name]
        if which:
            trace = _trace([period.jobs[i] for i in which], period, pool)
            lived = rule.run(trace, pool.nodes, USUAL)
            until_s = (period.until - period.begin).total_seconds()
            found[which] = np.clip(lived.wait_s, 0, np.maximum(0, until_s - lived.submit_s))
    return found


def _trace(jobs: Sequence[Submission], period: Period, pool: Pool) -> Trace:
    queues = tuple(sorted({job.workload.queue for job in jobs}))
    users = tuple(sorted({job.workload.user for job in jobs}))

    def column(values: Sequence[int]) -> Ints:
        return np.array(values, np.int64)

    return Trace(
        name="period",
        origin=period.begin,
        submit_s=column([round((j.submitted - period.begin).total_seconds()) for j in jobs]),
        duration_s=column([job.duration_s for job in jobs]),
        gpus=column([gpus_of(job) for job in jobs]),
        queue=column([queues.index(job.workload.queue) for job in jobs]),
        user=column([users.index(job.workload.user) for job in jobs]),
        index=np.arange(len(jobs)),
        queues=queues,
        users=users,
        gpus_per_node=pool.gpus_per_node,
    )
