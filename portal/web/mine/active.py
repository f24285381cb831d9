"""The person's own work; what of it waits or holds GPUs in narrow rows, read once for all of a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import QuerySet

from portal.accounts.models import User
from scheduling.models import Cluster, Workload
from scheduling.models.workloads import HOLDING, WAITING


class Active(NamedTuple):
    """Columns of a workload; ``gpus`` of one member in milli-GPU, queue and class by id."""

    pk: int
    state: str
    position: int | None
    queue_id: int | None
    gpu_class_id: int | None
    gpu_classes: list[str]
    gpus: int
    min_members: int
    members: int
    max_members: int
    held: bool
    submitted_at: datetime
    admitted_at: datetime | None

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING


def own(cluster: Cluster, user: User) -> QuerySet[Workload]:
    """What the person submitted, wherever it runs."""
    name = user.get_username()
    return Workload.objects.filter(cluster=cluster, user=name).exclude(user="")


def active_of(cluster: Cluster, user: User) -> Sequence[Active]:
    """One query."""
    live = own(cluster, user).filter(state__in=(*WAITING, *HOLDING)).order_by()
    return [Active(*row) for row in live.values_list(*Active._fields)]
