"""What a person may read of a workload's pods, and what its runs did with their GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from portal.accounts.models import User
from portal.teams.access import may_operate_workload, tops
from scheduling.cluster.connection.client import Person
from scheduling.models import Workload
from scheduling.services.workloads.submit import person_of, upwards

HOURS = 48
"""The last ones that are drawn."""
BAR = 12
"""Width of one hour; the height stands for all of it."""
HEIGHT = 40


def reads_as(user: User, work: Workload) -> Person:
    """In whose name the cluster is asked: the person with the groups of their own teams at the queue or above
    it; of work that they may act on, with all those that work there, as for the act itself."""
    queues = list(upwards(work.queue))
    if not may_operate_workload(user, work):
        own = set(tops(user))
        queues = [queue for queue in queues if (queue.cluster_id, queue.path) in own]
    return person_of(user.get_username(), queues)


@dataclass(frozen=True, slots=True)
class Hour:
    start: datetime
    active: float
    memory: float
    x: int
    y: float
    tall: float


@dataclass(frozen=True, slots=True)
class Use:
    """Of the GPU time that was measured: how much of it computed, how much idled, how full the memory was."""

    active: float
    idle: float
    memory_mib: float
    memory_peak_mib: float
    memory_total_mib: float
    hours: tuple[Hour, ...]

    @property
    def width(self) -> int:
        return len(self.hours) * BAR


def use_of(work: Workload) -> Use | None:
    """None where nothing was measured."""
    rows = list(work.gpu_use.order_by("-start")[:HOURS])[::-1]
    measured = sum(row.gpu_s for row in rows)
    if not measured:
        return None
    hours = []
    for at, row in enumerate(rows):
        active = min(1.0, row.active_gpu_s / row.gpu_s)
        memory = row.memory_mib / row.memory_total_mib if row.memory_total_mib else 0.0
        tall = max(1.0, HEIGHT * active)
        hours.append(Hour(row.start, active, memory, at * BAR, HEIGHT - tall, tall))
    return Use(
        sum(row.active_gpu_s for row in rows) / measured,
        sum(row.idle_gpu_s for row in rows) / measured,
        sum(row.memory_mib * row.gpu_s for row in rows) / measured,
        max(row.memory_peak_mib for row in rows),
        max(row.memory_total_mib for row in rows),
        tuple(hours),
    )
