"""What time does to requests: scheduled ones begin, running ones near their end and end.

Each step is claimed by its own transaction. A process that is killed between two of them has done the first
and not the second, which the next pass takes up; of two workers at once, one finds the step taken.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.approvals import effects
from portal.approvals.models import QuotaRequest
from portal.approvals.moves import MOVED_ON, move
from portal.approvals.states import GRANTED, State, Verb
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError

log = logging.getLogger(__name__)

NOTICE = timedelta(days=3)
"""So long before its end a request is said to expire; a short one when a quarter of it is left."""


def advance_all() -> int:
    """Every request of every cluster whose time has come; how many steps were taken."""
    return sum(advance(cluster) for cluster in Cluster.objects.all())


def advance(cluster: Cluster) -> int:
    """The due steps of ``cluster``, in order: beginnings, then warnings of an end, then ends."""
    now = cluster.now()
    rows = QuotaRequest.objects.filter(cluster=cluster)
    due: list[tuple[QuerySet[QuotaRequest], Callable[[QuotaRequest], None]]] = [
        (rows.filter(state=State.SCHEDULED, starts_at__lte=now), _begin),
        (rows.filter(state=State.ACTIVE, ends_at__lte=now + NOTICE, ends_at__gt=now), _near_end),
        (rows.filter(state__in=GRANTED, ends_at__lte=now), _expire),
    ]
    return sum(_taken(request, step) for found, step in due for request in _related(found))


def _related(rows: QuerySet[QuotaRequest]) -> list[QuotaRequest]:
    related = rows.filter(~Q(cluster=None)).select_related("cluster", "queue__cluster", "giver")
    return list(related.order_by("pk"))


def _taken(request: QuotaRequest, step: Callable[[QuotaRequest], None]) -> bool:
    """Whether this call took the step; one that fails holds up no other."""
    try:
        step(request)
    except ServiceError as refused:
        if refused.code != MOVED_ON:
            log.exception("%s", request)
        return False
    except Exception:
        log.exception("%s", request)
        return False
    return True


def _begin(request: QuotaRequest) -> None:
    """Where it cannot begin any more, its author is asked for changes."""
    try:
        with transaction.atomic():
            move(request, Verb.BEGIN, State.ACTIVE, by=None)
            effects.begin(request, by=request.decider)
    except ServiceError as refused:
        if refused.code == MOVED_ON:
            raise
        with transaction.atomic():
            request.refresh_from_db()
            move(
                request, Verb.FAIL, State.CHANGES, by=None, note=str(refused),
                decision=str(refused)[:500],
            )  # fmt: skip


def _near_end(request: QuotaRequest) -> None:
    if warns_at(request) > request.cluster.now():
        raise ServiceError(MOVED_ON, "Not yet.")
    with transaction.atomic():
        move(request, Verb.NEAR_END, State.EXPIRING, by=None)


def warns_at(request: QuotaRequest) -> datetime:
    """When it is said that it ends: of a short one, when a quarter is left."""
    assert request.ends_at is not None  # noqa: S101 - only of requests that end
    began = request.starts_at or request.granted_at or request.created_at
    return request.ends_at - min(NOTICE, (request.ends_at - began) / 4)


def _expire(request: QuotaRequest) -> None:
    to = State.RENEWED if effects.is_renewed(request) else State.EXPIRED
    with transaction.atomic():
        move(request, Verb.EXPIRE, to, by=None)
