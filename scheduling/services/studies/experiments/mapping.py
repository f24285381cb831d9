"""The work of a trace on the queues of a cluster.

A queue of the trace that is called like a leaf of the cluster goes there. Of the others each person's work (a
job that names nobody: by itself) goes to one leaf as a whole, the most GPU-seconds first, each to the leaf
that has been given the least in proportion to its nominal quota (longest processing time first: Graham,
1969).
A job asks for the class of which its leaf has the most nominal quota, as equal members that fit on its nodes.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from scheduling.engine import model as m
from scheduling.services.errors import ServiceError
from scheduling.simulation.ahead.period import Period
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.traces import Trace, TraceJob, gang

Json = dict[str, Any]
Bundle = tuple[str, str]
"""(queue of the trace, who; or one job)"""


@dataclass(frozen=True, slots=True)
class Leaf:
    """``gpu_class`` is what its work asks for; milli-GPU."""

    name: str
    gpu_class: str
    nominal: int
    node_gpus: int
    class_gpus: int


def leaves_of(world: m.Snapshot) -> dict[str, Leaf]:
    """Leaves with nominal quota of a class that has nodes. Raises ServiceError where there is none."""
    inner = {queue.parent for queue in world.queues}
    nodes: dict[str, list[int]] = defaultdict(list)
    for node in world.nodes:
        if node.ready and not node.dedicated:
            nodes[node.gpu_class].append(node.gpus - node.foreign_gpus)
    rates = {one.name: one.exchange_rate for one in world.gpu_classes}
    found = {}
    for queue in world.queues:
        mine = {
            name: q.nominal for name, q in queue.quotas.items() if q.nominal and nodes.get(name)
        }
        if queue.name in inner or not mine:
            continue
        name = max(mine, key=lambda one: (mine[one] * rates.get(one, 1.0), one))
        found[queue.name] = Leaf(queue.name, name, mine[name], max(nodes[name]), sum(nodes[name]))
    if not found:
        raise ServiceError(
            "no_quota", "No queue has quota that a trace could use.", "Give one a nominal quota first.",
            field="trace",
        )  # fmt: skip
    return found


def placed(trace: Trace, leaves: Mapping[str, Leaf]) -> dict[Bundle, Leaf]:
    """Where the work of each goes."""
    work: dict[Bundle, int] = defaultdict(int)
    given = dict.fromkeys(leaves, 0)
    for job in trace:
        gpu_s = job.gpus * job.duration_s
        if job.queue in leaves:
            given[job.queue] += gpu_s
        else:
            work[bundle_of(job)] += gpu_s
    heap = [(given[name] / leaf.nominal, name) for name, leaf in leaves.items()]
    heapq.heapify(heap)
    found = {}
    for bundle in sorted(work, key=lambda one: (-work[one], one)):
        filled, name = heap[0]
        found[bundle] = leaves[name]
        heapq.heapreplace(heap, (filled + work[bundle] / leaves[name].nominal, name))
    return found


def bundle_of(job: TraceJob) -> Bundle:
    return job.queue, job.user or job.name


def period_of_trace(
    trace: Trace,
    world: m.Snapshot,
    begin: datetime,
    end: datetime,
    warm_up: timedelta,
    priority_class: str,
) -> tuple[Period, Json]:
    """Its work of warm-up and period, and how it was mapped, for people to read. Raises ServiceError."""
    leaves = leaves_of(world)
    starts = begin - warm_up
    cut = _cut(trace, starts, end)
    where = placed(cut, leaves)
    jobs, too_large = [], 0
    for number, job in enumerate(cut):
        leaf = leaves.get(job.queue) or where[bundle_of(job)]
        work = _workload(job, leaf, cut.submitted_at(number), priority_class, _asked_s(cut, number))
        if work is None:
            too_large += 1
        else:
            jobs.append(Submission(work, job.duration_s))
    judged = tuple(job.submitted >= begin for job in jobs)
    return Period(starts, begin, end, tuple(jobs), judged), _summary(cut, leaves, where, too_large)


def _cut(trace: Trace, starts: datetime, end: datetime) -> Trace:
    at_s = trace.submit_s + trace.origin.timestamp()
    within = (at_s >= starts.timestamp()) & (at_s < end.timestamp())
    return trace.take(np.flatnonzero(within))


def _asked_s(trace: Trace, position: int) -> int:
    return 0 if trace.asked_s is None else int(trace.asked_s[position])


def _workload(
    job: TraceJob, leaf: Leaf, submitted: datetime, priority_class: str, asked_s: int
) -> m.Workload | None:
    """None of what is larger than all nodes of its class together."""
    per_node = leaf.node_gpus // m.MILLI
    if per_node < 1 or job.gpus * m.MILLI > leaf.class_gpus:
        return None
    members = gang(job.gpus, per_node)
    return m.Workload(
        name=job.name,
        queue=leaf.name,
        user=job.user,
        priority_class=priority_class,
        submitted=submitted,
        gpus=job.gpus // members * m.MILLI,
        members=m.Members(members, members),
        gpu_classes=(leaf.gpu_class,),
        predicted=m.PredictedRunTime(float(asked_s), float(asked_s)) if asked_s else None,
    )


def _summary(
    cut: Trace, leaves: Mapping[str, Leaf], where: Mapping[Bundle, Leaf], too_large: int
) -> Json:
    of_cut = {cut.queues[number] for number in np.unique(cut.queue).tolist()}
    return {
        "by_name": sorted(of_cut & leaves.keys()),
        "by_share": len({queue for queue, _ in where}),
        "people": len(where),
        "has_users": any(cut.users),
        "too_large": too_large,
        "gpu_hours": round(cut.gpu_seconds / 3600, 1),
    }
