"""What time does to requests and loans: scheduled ones begin, running ones near their end and end.

Each step is claimed by its own transaction. A process that is killed between two of them has done the first
and not the second, which the next pass takes up; of two workers at once, one finds the step taken.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.approvals import effects
from portal.approvals.loans import doors as loans
from portal.approvals.loans.states import RUNNING as LOANS_RUNNING
from portal.approvals.models import QuotaLoan, QuotaRequest
from portal.approvals.moves import MOVED_ON, move
from portal.approvals.states import GRANTED, State, Verb
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError

log = logging.getLogger(__name__)

Subject = TypeVar("Subject", QuotaRequest, QuotaLoan)
LOAN_NOTICE = timedelta(days=1)
"""So long before its end a loan is said to end; its recall is its own notice."""
NOTICE = timedelta(days=3)
"""So long before its end a request is said to expire; a short one when a quarter of it is left."""


def advance_all() -> int:
    """Every request of every cluster whose time has come; how many steps were taken."""
    clusters = list(Cluster.objects.all())
    return sum(advance(cluster) + advance_loans(cluster) for cluster in clusters)


def advance(cluster: Cluster) -> int:
    """The due steps of ``cluster``, in order: beginnings, then warnings of an end, then ends."""
    now = cluster.now()
    rows = QuotaRequest.objects.filter(cluster=cluster)
    steps: list[tuple[QuerySet[QuotaRequest], Callable[[QuotaRequest], None]]] = [
        (rows.filter(state=State.SCHEDULED, starts_at__lte=now), _begin),
        (rows.filter(state=State.ACTIVE, ends_at__lte=now + NOTICE, ends_at__gt=now), _near_end),
        (rows.filter(state__in=GRANTED, ends_at__lte=now), _expire),
    ]
    return sum(_take_step(request, step) for found, step in steps for request in _related(found))


def advance_loans(cluster: Cluster) -> int:
    """Say that loans end soon, and note that they have; how many steps were taken."""
    now = cluster.now()
    running = QuotaLoan.objects.filter(cluster=cluster, state__in=LOANS_RUNNING)
    rows = running.select_related("cluster", "lender__cluster", "borrower", "gpu_class", "term")
    over = rows.filter(term__ends_at__lte=now)
    soon = rows.filter(term__ends_at__gt=now, term__ends_at__lte=now + LOAN_NOTICE, warned=False)
    steps = [(loan, loans.end) for loan in over] + [(loan, loans.near_end) for loan in soon]
    return sum(_take_step(loan, step) for loan, step in steps)


def _related(rows: QuerySet[QuotaRequest]) -> list[QuotaRequest]:
    related = rows.filter(~Q(cluster=None)).select_related("cluster", "queue__cluster", "giver")
    return list(related.order_by("pk"))


def _take_step(subject: Subject, step: Callable[[Subject], object]) -> bool:
    """Whether this call took the step; one that fails holds up no other."""
    try:
        step(subject)
    except ServiceError as refused:
        if refused.code != MOVED_ON:
            log.exception("%s", subject)
        return False
    except Exception:
        log.exception("%s", subject)
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
