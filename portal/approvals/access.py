"""Classes of service with what requests in force add: GPU classes and priorities beyond the persona's.

The engine's worker, the guardrails and the submit form all ask here, by the setting
``WEIR_SERVICE_CLASSES``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial

from django.db.models import Q, QuerySet

from portal.approvals.models import QuotaRequest
from portal.approvals.states import GRANTED, Kind
from portal.teams import service
from scheduling.models import Cluster
from scheduling.services.queues.service_classes import ServiceClass, ServiceClasses, is_within
from scheduling.services.tables.row_cache import RowCache

Given = tuple[str, str, str]
"""Path of the queue, GPU class, priority class; one of the classes is empty."""


def service_classes(cluster: Cluster, unchanged: RowCache) -> ServiceClasses:
    """Of everybody who may submit, each where a request gives more with one class of service more."""
    found = service.service_classes(cluster, unchanged)
    # By the cluster's clock: a worker that is late ends none too late.
    given = unchanged.steady_at("given", cluster.pk, cluster.now(), partial(in_force, cluster))
    if not given:
        return found

    def widen() -> ServiceClasses:
        more = [wide for one in found.classes for wide in _widened(one, given)]
        return replace(found, classes=(*found.classes, *more))

    return unchanged.once("wider service classes", (found, given), widen)


def in_force(cluster: Cluster, at: datetime) -> QuerySet[QuotaRequest, Given]:
    """What requests give at ``at``."""
    rows = QuotaRequest.objects.filter(
        Q(starts_at=None) | Q(starts_at__lte=at),
        Q(ends_at=None) | Q(ends_at__gt=at),
        cluster=cluster,
        kind=Kind.ACCESS,
        state__in=GRANTED,
        queue__isnull=False,
    )
    return rows.order_by("pk").values_list("queue__path", "gpu_class", "priority_class")


def _widened(service: ServiceClass, given: Iterable[Given]) -> Iterable[ServiceClass]:
    """The same person's class of service in each queue that was given something."""
    for path in sorted({place for place, _, _ in given}):
        where = _common(service, path)
        if where is None:
            continue
        mine = [one for one in given if is_within(where, one[0])]
        gpus = frozenset(gpu_class for _, gpu_class, _ in mine if gpu_class)
        priorities = frozenset(priority for _, _, priority in mine if priority)
        wide = replace(
            service,
            path=where,
            below=service.below,
            gpu_classes=None if service.gpu_classes is None else service.gpu_classes | gpus,
            priority_classes=None
            if service.priority_classes is None
            else service.priority_classes | priorities,
        )
        if (wide.gpu_classes, wide.priority_classes) != (
            service.gpu_classes,
            service.priority_classes,
        ):
            yield wide


def _common(service: ServiceClass, path: str) -> str | None:
    """The highest queue where both hold; None where they never meet."""
    if is_within(service.path, path):
        return service.path
    return path if service.reaches(path) else None
