"""What waits for somebody's decision is planned before they look: requests and loans, a few in each pass."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.utils import timezone

from portal.approvals.loans.states import WAITING
from portal.approvals.models import QuotaLoan, QuotaRequest
from portal.approvals.states import DECIDABLE, Kind
from portal.plans import asking, kinds
from portal.plans.models import PlanQuestion
from scheduling.models import Cluster

MOST, LOOKED_AT = 2, 50
"""Plans of one pass, each of which reads its cluster once; so many are kept up, the latest."""
EVERY = timedelta(minutes=10)

Question = tuple[Cluster, str, dict[str, Any]]


def ask_ahead() -> int:
    """Ask for what was never planned or too long ago; for how many."""
    questions = [one for one in _waiting() if _is_due(*one)][:MOST]
    for cluster, kind, question in questions:
        asking.ask(cluster, kind, question, anew=True)
    return len(questions)


def _waiting() -> Iterator[Question]:
    requests = QuotaRequest.objects.filter(state__in=DECIDABLE).exclude(kind=Kind.ACCESS)
    for request in requests.select_related("cluster", "giver")[:LOOKED_AT]:
        yield request.cluster, kinds.REQUEST, kinds.of_request(request)
    loans = QuotaLoan.objects.filter(state__in=WAITING).select_related("cluster")
    for loan in loans[:LOOKED_AT]:
        yield loan.cluster, kinds.LOAN, kinds.of_loan(loan, loan.gpus)


def _is_due(cluster: Cluster, kind: str, question: dict[str, Any]) -> bool:
    since = timezone.now() - EVERY
    digest = asking.digest_of(kind, question)
    return not PlanQuestion.objects.filter(
        cluster=cluster, digest=digest, asked_at__gt=since
    ).exists()
