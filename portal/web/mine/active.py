"""The person's own work; what of it waits or holds GPUs in narrow rows, read once for all of a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import QuerySet

from portal.accounts.models import User
from scheduling.models import Cluster, State, Workload
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

    def was_held(self, planned: datetime) -> bool:
        """Whether a plan of that time found it holding GPUs: what a plan admits, it counted as pending."""
        began = self.admitted_at is not None and self.admitted_at < planned
        return began and self.members > 0


def own(cluster: Cluster, user: User) -> QuerySet[Workload]:
    """What the person submitted, wherever it runs."""
    name = user.get_username()
    return Workload.objects.filter(cluster=cluster, user=name).exclude(user="")


def active_of(cluster: Cluster, user: User) -> Sequence[Active]:
    """One query."""
    return _read(own(cluster, user).filter(state__in=(*WAITING, *HOLDING)))


def ended_after(planned: datetime, cluster: Cluster, user: User) -> Sequence[Active]:
    """What a plan of that time still counted, as it was at its end. One query."""
    return _read(own(cluster, user).filter(state=State.FINISHED, finished_at__gt=planned))


def _read(works: QuerySet[Workload]) -> Sequence[Active]:
    return [Active(*row) for row in works.order_by().values_list(*Active._fields)]
