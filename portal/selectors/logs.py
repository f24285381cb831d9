"""What a person may read of a workload's pods, and what its runs did with their GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from portal.accounts.models import User
from portal.teams.access import may_operate_workload, tops
from scheduling.cluster.connection.client import Person
from scheduling.models import Workload
from scheduling.services.errors import ServiceError
from scheduling.services.workloads.submit import person_of

HOURS = 48
"""The last ones that are drawn."""
BAR = 12
"""Width of one hour; the height stands for all of it."""
HEIGHT = 40


def reads_as(user: User, work: Workload) -> Person:
    """In whose name the cluster is asked. A log may say more than the portal shows of a workload: it is for
    whoever may act on the work, and for the teams of its queue and of those above.

    Raises ServiceError for everybody else who sees the workload.
    """
    if not (may_operate_workload(user, work) or _is_of_their_team(user, work)):
        raise ServiceError(
            "not_allowed",
            "Its log and events are for its owner and the teams of its queue.",
            "Ask its owner, or an admin for a place in the team.",
        )
    return person_of(user.get_username())


def _is_of_their_team(user: User, work: Workload) -> bool:
    own, queue = set(tops(user)), work.queue
    while queue is not None and (queue.cluster_id, queue.path) not in own:
        queue = queue.parent
    return queue is not None


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
