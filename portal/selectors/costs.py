"""What a workload has cost, and who may read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.teams.access import places
from portal.teams.rights import rights_of
from scheduling.models import MILLI, GpuClass, Queue, State, Workload


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU-hours held so far times the price of the class held now or last."""

    amount: Decimal
    currency: str
    price_per_gpu_hour: Decimal
    gpu_hours: float


def gpu_seconds(workload: Workload, now: datetime) -> float:
    """GPU-seconds held by ended runs and, up to ``now``, by the current one."""
    current = 0.0
    if workload.state in (State.ADMITTED, State.RUNNING) and workload.admitted_at:
        held_s = max(0.0, (now - workload.admitted_at).total_seconds())
        current = workload.allocated_gpus / MILLI * held_s
    return workload.used_gpu_s + current


def cost_of(workload: Workload, now: datetime) -> Cost | None:
    """The cost so far; None when it never held a GPU of a known class."""
    gpu_class = workload.gpu_class or _last_class(workload)
    if gpu_class is None:
        return None
    hours = gpu_seconds(workload, now) / 3600
    price = gpu_class.price_per_gpu_hour
    amount = (Decimal(str(round(hours, 6))) * price).quantize(Decimal("0.01"))
    return Cost(amount, workload.cluster.currency, price, round(hours, 4))


def _last_class(workload: Workload) -> GpuClass | None:
    """Of a workload that waits again: the class its last eviction took."""
    evictions = list(workload.evictions.all())
    return evictions[0].gpu_class if evictions else None


def may_read_cost(user: User, workload: Workload) -> bool:
    """Of one's own work, and of queues where the persona reads costs."""
    if workload.user == user.get_username() or rights_of(user).everywhere(Capability.COSTS):
        return True
    return workload.queue_id is not None and (
        Queue.objects.filter(places(user, Capability.COSTS), pk=workload.queue_id).exists()
    )
