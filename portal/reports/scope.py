"""Which queues and GPU classes a report counts: what was asked for, within what the person may see."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import prefetch_related_objects
from django.http import Http404
from django.utils.functional import cached_property

from portal.accounts.models import User
from portal.display.units import gpus_each
from portal.reports.filters import ReportFilters
from portal.teams.access import own_queues
from portal.teams.rights import rights_of
from scheduling.models import Cluster, GpuClass, Queue

Value = TypeVar("Value")


@dataclass(frozen=True)
class Scope:
    """Queues in the report by id (whole subtrees) and its GPU classes by id, in page order."""

    cluster: Cluster
    queues: Mapping[int, Queue]
    classes: Mapping[int, GpuClass]
    _known: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """What ``make`` returned the first time: a report and its period before ask for the same rows."""
        if key not in self._known:
            self._known[key] = make()
        known: Value = self._known[key]
        return known

    @cached_property
    def leaves(self) -> frozenset[int]:
        """Queues without children; they hold the workloads, so sums over them count nothing twice."""
        parents = {queue.parent_id for queue in self.queues.values()}
        return frozenset(pk for pk in self.queues if pk not in parents)

    @cached_property
    def tops(self) -> frozenset[int]:
        """Queues whose parent is outside: where the scope's own quotas stand."""
        return frozenset(
            pk for pk, queue in self.queues.items() if queue.parent_id not in self.queues
        )

    @property
    def is_whole(self) -> bool:
        """True when the root is in it: then use is measured against the cluster's ready GPUs."""
        return any(queue.is_root for queue in self.queues.values())

    @cached_property
    def unit(self) -> Unit:
        return Unit.of(self.classes.values())


@dataclass(frozen=True)
class Unit:
    """What GPU figures of a report count: whole GPUs, slices by the part of a GPU that they are."""

    weights: Mapping[int, float]
    """GPUs in one of a class, by class id."""
    note: str
    """Says so, where there are slices; else empty."""

    @classmethod
    def of(cls, classes: Iterable[GpuClass]) -> Unit:
        parts = {c: gpus_each(c) for c in classes}
        slices = sorted({part for part in parts.values() if part != 1})
        note = f"a MIG slice counts {' or '.join(map(str, slices))}" if slices else ""
        return cls({c.pk: float(part) for c, part in parts.items()}, note)


def reportable_queues(cluster: Cluster, user: User) -> dict[int, Queue]:
    """Queues that ``user`` may have reports on, parents before children. Read once a request.

    Raises:
        Http404: there is none; the report then looks absent.
    """
    rows = own_queues(user).filter(cluster=cluster).order_by("path", "pk")
    queues = rights_of(user).once(
        ("reportable", cluster.pk), lambda: {queue.pk: queue for queue in rows}
    )
    if not queues:
        raise Http404
    return queues


def classes_of(cluster: Cluster) -> dict[int, GpuClass]:
    """Its GPU classes by id, in page order; read once for this ``cluster``."""
    prefetch_related_objects([cluster], "gpu_classes")
    return {c.pk: c for c in cluster.gpu_classes.all()}


def report_scope(cluster: Cluster, filters: ReportFilters, user: User) -> Scope:
    """Narrow what ``user`` may see to the subtree and classes of ``filters``.

    Raises:
        Http404: the person has no queue here.
        ValidationError: at ``queue`` or ``class``, when there is none of that name to see.
    """
    queues = reportable_queues(cluster, user)
    if filters.queue:
        queues = _subtree(queues, filters.queue)
    classes = classes_of(cluster)
    if filters.gpu_classes:
        classes = _chosen_classes(classes, filters.gpu_classes)
    return Scope(cluster, queues, classes)


def _subtree(queues: dict[int, Queue], name: str) -> dict[int, Queue]:
    top = next((queue for queue in queues.values() if queue.name == name), None)
    if top is None:
        raise ValidationError({"queue": f"There is no queue {name}. Choose one of the list."})
    return {pk: queue for pk, queue in queues.items() if queue.is_within(top)}


def _chosen_classes(classes: dict[int, GpuClass], names: tuple[str, ...]) -> dict[int, GpuClass]:
    known = {c.name for c in classes.values()}
    if missing := [name for name in names if name not in known]:
        raise ValidationError(
            {"class": f"There is no GPU class {missing[0]}. Choose of: {', '.join(sorted(known))}."}
        )
    return {pk: c for pk, c in classes.items() if c.name in names}
