"""KAI-Scheduler's ReclaimLargeJobs: a full cluster of small borrowers, one large gang that is owed its GPUs.

``N`` nodes of 8 GPUs run 8 N jobs of one GPU, all of a queue that is over its quota. A queue with nothing
running asks for a gang of N/10 members of 8 GPUs, inside its quota. Every GPU of the gang has to come
from a borrower, so the fewest evictions are as many as the gang has GPUs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from scheduling.engine import Frame, encode, plan_frame
from scheduling.engine.model import MILLI, GpuClass, Node, PriorityClass, Queue, Quota, Snapshot

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
GPUS_PER_NODE = 8


@dataclass(frozen=True, slots=True)
class Reclaim:
    """One cycle: CPU seconds of the whole plan, evictions, and the fewest that could do."""

    cpu_s: float
    evictions: int
    minimum: int
    promised: int


def reclaim_large_job(nodes: int) -> Reclaim:
    """Plan once over ``nodes`` full nodes, tables of the cycle included; kernels are loaded before."""
    plan_frame(full_cluster(10))
    frame = full_cluster(nodes)
    began_s = time.process_time()
    plan = plan_frame(frame)
    cpu_s = time.process_time() - began_s
    gang = nodes // 10 * GPUS_PER_NODE
    return Reclaim(cpu_s, len(plan.evicted()), gang, int(plan.members[plan.promised()].sum()))


def full_cluster(nodes: int) -> Frame:
    """The nodes, all GPUs lent to ``borrower``, and the gang of ``owner`` that waits."""
    frame = encode(_empty_cluster(nodes))
    owner, borrower = (frame.queue_names.index(name) for name in ("owner", "borrower"))
    for node in range(nodes):
        for _ in range(GPUS_PER_NODE):
            slot = frame.add_workload(queue=borrower, submitted=frame.now)
            frame.start_on(slot, 0, [(node, -1)])
    members = nodes // 10
    frame.now += 3600
    frame.add_workload(
        queue=owner, submitted=frame.now, gpus=GPUS_PER_NODE * MILLI, members=(members, members)
    )
    return frame


def _empty_cluster(nodes: int) -> Snapshot:
    gpus = nodes * GPUS_PER_NODE * MILLI
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("gpu"),),
        nodes=tuple(Node(f"n{i:05}", "gpu", GPUS_PER_NODE * MILLI) for i in range(nodes)),
        queues=(
            Queue("borrower", quotas={"gpu": Quota(gpus // 2)}),
            Queue("owner", quotas={"gpu": Quota(gpus // 2)}),
        ),
        priority_classes=(PriorityClass("train"),),
    )
