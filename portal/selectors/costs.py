"""What a workload has cost, and who may read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from operator import itemgetter

from django.db.models import Prefetch, QuerySet

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.display.units import gpus_each
from portal.teams.access import places
from portal.teams.rights import rights_of
from scheduling.models import Cluster, GpuClass, Queue, Transition, Workload
from scheduling.services.ledger.holds import OF_STEP, Hold, charged, holds_between, holds_of
from scheduling.services.ledger.prices import Change, changes_of, prices_at

STEPS = Prefetch("transitions", Transition.objects.select_related("gpu_class"))
"""What ``gpu_seconds`` and ``cost_of`` read of each workload."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Of a cluster's GPU classes, now and before."""

    classes: Mapping[int, GpuClass]
    changes: Sequence[Change]

    @classmethod
    def of(cls, classes: Iterable[GpuClass]) -> Prices:
        """One query."""
        by_pk = {c.pk: c for c in classes}
        return cls(by_pk, changes_of(by_pk))

    def of_holds(self, holds: Sequence[Hold]) -> Decimal:
        return _money(charged(holds, self.classes, self.changes))

    def at(self, gpu_class: GpuClass, at: datetime) -> Decimal:
        """Of one GPU or slice an hour."""
        found = prices_at({gpu_class.pk: gpu_class}, self.changes, at)[gpu_class.pk]
        return Decimal(str(found)).quantize(Decimal("0.0001"))


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU-hours held so far, each at the price that its class had then; ``price_per_gpu_hour`` is of the
    class held now or last and of that time, of one GPU or slice; ``one_price`` where all was held at it."""

    amount: Decimal
    currency: str
    price_per_gpu_hour: Decimal
    gpu_hours: float
    one_price: bool = True


def gpu_seconds(workload: Workload, now: datetime) -> float:
    """GPU-seconds held up to ``now``, in whole GPUs: a slice counts as its part of one, what was held of a
    class that is gone as it was counted then. Asks for nothing where ``STEPS`` and its class were fetched."""
    steps = list(workload.transitions.all())
    classes = {step.gpu_class_id: step.gpu_class for step in steps if step.gpu_class}
    if own := workload.gpu_class:
        classes.setdefault(own.pk, own)
    holds = [hold for hold in holds_of(workload, steps, now) if hold.gpu_class in classes]
    if not holds:
        return workload.held_gpu_s(now)
    return sum(hold.gpu_s * float(gpus_each(classes[hold.gpu_class])) for hold in holds)


def hours_of(workloads: QuerySet[Workload]) -> dict[int, float]:
    """GPU-hours held so far by id, in whole GPUs, of those that held any. Two queries, and no objects: a list
    may be of a hundred thousand."""
    clusters = {c.pk: c for c in Cluster.objects.filter(pk__in=workloads.values("cluster"))}
    now = {pk: cluster.now() for pk, cluster in clusters.items()}
    classes = GpuClass.objects.filter(cluster__in=list(clusters))
    weights = {c.pk: float(gpus_each(c)) for c in classes}
    steps = (
        Transition.objects.filter(workload__in=workloads.order_by().values("pk"))
        .order_by("workload_id", "at", "id")
        .annotate(held_class=OF_STEP)
        .values_list("workload_id", "at", "gpus", "held_class", "workload__finished_at",
                     "workload__cluster_id")
    )  # fmt: skip
    found: dict[int, float] = {}
    for pk, mine in groupby(steps.iterator(chunk_size=5000), key=itemgetter(0)):
        lived = list(mine)
        *_, finished, cluster = lived[0]
        rows = [
            (at, gpus, gpu_class or 0) for _, at, gpus, gpu_class, *_ in lived
        ]  # 0: a class that is gone
        holds = holds_between(rows, finished, now[cluster])
        gpu_s = sum(hold.gpu_s * weights.get(hold.gpu_class, 1.0) for hold in holds)
        if gpu_s:
            found[pk] = gpu_s / 3600
    return found


def cost_of(workload: Workload, now: datetime, prices: Prices | None = None) -> Cost | None:
    """The cost so far; None when it never held a GPU of a known class. Give ``prices`` for several."""
    holds = holds_of(workload, workload.transitions.all(), now)
    known = prices or Prices.of(workload.cluster.gpu_classes.all())
    last = workload.gpu_class or (known.classes.get(holds[-1].gpu_class) if holds else None)
    if last is None:
        return None
    price = known.at(last, holds[-1].end if holds else now)
    amount, gpu_s = known.of_holds(holds), sum(hold.gpu_s for hold in holds)
    return Cost(
        amount,
        workload.cluster.currency,
        price,
        round(gpu_seconds(workload, now) / 3600, 4),
        one_price=amount == _money(gpu_s / 3600 * float(price)),
    )


def amount_of(gpu_class: GpuClass, gpu_s: float) -> Decimal:
    """What GPU- or slice-seconds of a class cost at today's price."""
    return _money(gpu_s / 3600 * float(gpu_class.price_per_gpu_hour))


def _money(amount: float) -> Decimal:
    """Whole cents; noise of floating point below a millionth tips no half cent."""
    return Decimal(str(round(amount, 6))).quantize(Decimal("0.01"))


def may_read_cost(user: User, workload: Workload) -> bool:
    """Of one's own work, and of queues where the persona reads costs."""
    if workload.user == user.get_username() or rights_of(user).everywhere(Capability.COSTS):
        return True
    return workload.queue_id is not None and (
        Queue.objects.filter(places(user, Capability.COSTS), pk=workload.queue_id).exists()
    )
