"""The person's own work; what of it waits or holds GPUs in narrow rows, read once for all of a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.accounts.models import User
from scheduling.models import Cluster, State, Transition, Workload
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

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING


def own(cluster: Cluster, user: User) -> QuerySet[Workload]:
    """What the person submitted, wherever it runs."""
    name = user.get_username()
    return Workload.objects.filter(cluster=cluster, user=name).exclude(user="")


def active_of(cluster: Cluster, user: User) -> Sequence[Active]:
    """One query."""
    works = own(cluster, user).filter(state__in=(*WAITING, *HOLDING)).order_by()
    return [Active(*row) for row in works.values_list(*Active._fields)]


def as_planned(
    planned: datetime, active: Sequence[Active], cluster: Cluster, user: User
) -> Sequence[Active]:
    """The person's work as a plan of that time found it: ``active``, what waits and holds GPUs now, and what
    ended since, each as it was before its first step since. One query."""
    found = {one.pk: one for one in active}
    steps = Transition.objects.filter(workload=OuterRef("pk"))
    # What came to pass at that very instant the plan did, unless it is what only others do.
    others = Q(at=planned, to_state__in=(State.PENDING, State.FINISHED))
    last = steps.filter(Q(at__lt=planned) | others).order_by("-at", "-id")
    changed = (
        own(cluster, user)
        .filter(~Q(state=State.FINISHED) | Q(finished_at__gt=planned))
        .filter(Exists(steps.filter(at__gte=planned).exclude(others)))
        .annotate(was=last.values("to_state")[:1], had=last.values("gpus")[:1])
        .annotate(on=last.values("gpu_class_id")[:1])
        .order_by()
    )
    for *row, was, had, on in changed.values_list(*Active._fields, "was", "had", "on"):
        one = Active(*row)
        members = (had or 0) // max(1, one.gpus)
        found[one.pk] = one._replace(
            state=was or State.PENDING, members=members, gpu_class_id=on or one.gpu_class_id
        )
    return [one for one in found.values() if one.state != State.FINISHED]
