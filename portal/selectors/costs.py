"""What a workload has cost, and who may read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Prefetch

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.display.units import gpus_each
from portal.teams.access import places
from portal.teams.rights import rights_of
from scheduling.models import GpuClass, Queue, Transition, Workload
from scheduling.services.ledger.holds import by_class

STEPS = Prefetch("transitions", Transition.objects.select_related("gpu_class"))
"""What ``held_of`` reads of each workload."""


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU-hours held so far, each at the price of the class that they were held on; ``price_per_gpu_hour`` is
    of the class held now or last, of one GPU or slice."""

    amount: Decimal
    currency: str
    price_per_gpu_hour: Decimal
    gpu_hours: float


def gpu_seconds(workload: Workload, now: datetime) -> float:
    """GPU-seconds held up to ``now``, in whole GPUs: a slice counts as its part of one, what was held of a
    class that is gone as it was counted then."""
    held = held_of(workload, now)
    if not held:
        return workload.held_gpu_s(now)
    return sum(gpu_s * float(gpus_each(gpu_class)) for gpu_class, gpu_s in held)


def held_of(workload: Workload, now: datetime) -> list[tuple[GpuClass, float]]:
    """GPU- or slice-seconds of each class that it held, in their order. Asks for nothing where ``STEPS`` and
    the workload's own class were fetched."""
    steps = list(workload.transitions.all())
    classes = {step.gpu_class_id: step.gpu_class for step in steps if step.gpu_class}
    if own := workload.gpu_class:
        classes.setdefault(own.pk, own)
    held = by_class(workload, steps, now)
    return [(classes[pk], gpu_s) for pk, gpu_s in held.items() if pk in classes]


def cost_of(workload: Workload, now: datetime) -> Cost | None:
    """The cost so far; None when it never held a GPU of a known class."""
    held = held_of(workload, now)
    last = workload.gpu_class or (held[-1][0] if held else None)
    if last is None:
        return None
    amount = sum((amount_of(*each) for each in held), Decimal(0))
    hours = gpu_seconds(workload, now) / 3600
    price = last.price_per_gpu_hour
    return Cost(amount, workload.cluster.currency, price, round(hours, 4))


def amount_of(gpu_class: GpuClass, gpu_s: float) -> Decimal:
    """What GPU- or slice-seconds of a class cost."""
    hours = Decimal(str(round(gpu_s / 3600, 6)))
    return (hours * gpu_class.price_per_gpu_hour).quantize(Decimal("0.01"))


def may_read_cost(user: User, workload: Workload) -> bool:
    """Of one's own work, and of queues where the persona reads costs."""
    if workload.user == user.get_username() or rights_of(user).everywhere(Capability.COSTS):
        return True
    return workload.queue_id is not None and (
        Queue.objects.filter(places(user, Capability.COSTS), pk=workload.queue_id).exists()
    )
