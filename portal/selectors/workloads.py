"""A workload as a line of a table: how long it waits or runs, and what may be done with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max

from portal.accounts.models import User
from portal.display.filters import WAITING
from portal.display.format import number
from portal.teams.access import operable
from scheduling.models import Cluster, GpuClass, State, Transition, Workload


@dataclass(frozen=True, slots=True)
class Row:
    """``since`` is the start of the present stretch of waiting or running, ``seconds`` its length."""

    workload: Workload
    gpu_class: GpuClass | None
    since: datetime
    seconds: float
    may_operate: bool

    @property
    def gpus(self) -> int:
        """Milli-GPU held, or asked for at least."""
        return self.workload.allocated_gpus or self.workload.requested_gpus

    @property
    def gang(self) -> str:
        """'2 × 8', '2–4 × 8', '8': members and GPUs of each."""
        return gang(self.workload)

    @property
    def may_hold(self) -> bool:
        return self.may_operate and self.workload.is_waiting and not self.workload.held

    @property
    def may_release(self) -> bool:
        return self.may_operate and self.workload.is_waiting and self.workload.held

    @property
    def may_cancel(self) -> bool:
        return self.may_operate and self.workload.state != State.FINISHED


def pods_of(shape: dict[str, Any]) -> str:
    """'4', '2–6'."""
    least = shape.get("pods_min")
    return str(shape["pods"]) if least is None else f"{least}–{shape['pods']}"


def gang(workload: Workload) -> str:
    """'2 × 8', '2–4 × 8', '8', '1 × 1 + 4 × 8': members and GPUs of each."""
    if workload.shapes:
        return " + ".join(f"{pods_of(one)} × {number(one['gpus'], 2)}" for one in workload.shapes)
    each = number(workload.gpus / 1000, 2)
    low, high = workload.min_members, workload.max_members
    if high == 1:
        return each
    return f"{low} × {each}" if low == high else f"{low}–{high} × {each}"


def rows(cluster: Cluster, workloads: Iterable[Workload], user: User) -> list[Row]:
    """Lines for ``workloads`` as ``user`` sees them; a fixed number of queries."""
    workloads, now = list(workloads), cluster.now()
    classes = {c.name: c for c in cluster.gpu_classes.all()}
    mine, waits = operable(user, workloads), waiting_since(workloads)
    return [_row(work, classes, _since(work, waits), now, work.pk in mine) for work in workloads]


def waiting_since(workloads: Iterable[Workload]) -> dict[int, datetime]:
    """When each of those that wait last began to, by id; what has no such step is left out."""
    waiting = [work.pk for work in workloads if work.is_waiting]
    steps = Transition.objects.filter(workload__in=waiting, to_state__in=WAITING).order_by()
    return dict(steps.values_list("workload").annotate(Max("at")))


def _row(
    work: Workload,
    classes: Mapping[str, GpuClass],
    since: datetime,
    now: datetime,
    may_operate: bool,
) -> Row:
    wish = next((classes[name] for name in work.gpu_classes if name in classes), None)
    until = work.finished_at if work.state == State.FINISHED and work.finished_at else now
    seconds = max(0.0, (until - since).total_seconds())
    return Row(work, work.gpu_class or wish, since, seconds, may_operate)


def _since(work: Workload, waits: Mapping[int, datetime]) -> datetime:
    """Since when it waits, or since when it runs (last ran, once it is done)."""
    if work.is_waiting:
        return waits.get(work.pk, work.submitted_at)
    return work.started_at or work.admitted_at or work.submitted_at
