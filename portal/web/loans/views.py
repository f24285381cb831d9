"""Loans of the queues that one leads, and one of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.core.paginator import Page
from django.db.models import Max
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render

from portal.accounts.models import User
from portal.approvals.loans.doors import recalled_end
from portal.approvals.loans.models import LoanOffer, QuotaLoan
from portal.approvals.loans.states import OVER, RUNNING, WAITING, LoanState, LoanVerb
from portal.approvals.loans.who import (
    led_of,
    led_queues,
    may_open,
    open_offers,
    verbs,
    visible_loans,
)
from portal.plans import asking as plans
from portal.plans.asking import PlanState
from portal.plans.kinds import LOAN, of_loan
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.loans.sides import (
    LoanDivision,
    LoanRow,
    divisions,
    figures,
    rows,
    sides_of,
    with_the_loan,
)
from portal.web.quotas.preview import readable
from scheduling.models import MILLI, Cluster, GpuClass, Queue, Quota, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.errors import ServiceError
from scheduling.services.queues.lending import in_force, nominal_of

IDLE_DAYS, MOST_IDLE = 7, 8


@dataclass(frozen=True, slots=True)
class Offer:
    offer: LoanOffer
    left: int
    mine: bool


@dataclass(frozen=True, slots=True)
class Idle:
    """Nominal quota that nobody of the queue held in the last days, and that it could lend."""

    queue: Queue
    gpu_class: GpuClass
    gpus: int


@dataclass(slots=True)
class LoanPage:
    waiting: list[tuple[QuotaLoan, bool]] = field(default_factory=list)
    """And whether it waits for the reader."""
    offers: list[Offer] = field(default_factory=list)
    rows: list[LoanRow] = field(default_factory=list)
    divisions: list[LoanDivision] = field(default_factory=list)
    idle: list[Idle] = field(default_factory=list)
    over: Page[QuotaLoan] | None = None

    @property
    def needs_me(self) -> int:
        return sum(mine for _, mine in self.waiting)


def page(request: PersonRequest, cluster: Cluster) -> LoanPage:
    user = request.user
    loans = visible_loans(user).filter(cluster=cluster)
    mine = {queue.pk: queue for queue in led_queues(user).filter(cluster=cluster)}
    offers = [Offer(one, one.left, one.lender_id in mine) for one in open_offers(user, cluster)]
    waiting = [
        (loan, LoanVerb.CONSENT in verbs(loan, mine)) for loan in loans.filter(state__in=WAITING)
    ]
    running = list(loans.filter(state__in=RUNNING))
    sides = figures(cluster, sides_of(running) | (mine.keys() if running else set()))
    return LoanPage(
        waiting=sorted(waiting, key=lambda pair: not pair[1]),
        offers=offers,
        rows=rows(running, sides, mine),
        divisions=divisions(running, sides, mine),
        idle=idle(user, cluster),
        over=page_of(request, loans.filter(state__in=OVER)),
    )


def idle(user: User, cluster: Cluster) -> list[Idle]:
    """Of the lowest queues that the person leads, the most first: nominal that they lend nobody, less the
    most that they held in an hour of the last days. Five queries."""
    led = {q.pk: q for q in led_queues(user).filter(cluster=cluster, children=None)}
    now = cluster.now()
    samples = UsageSample.objects.filter(
        queue__in=led, resolution=Resolution.HOUR, start__gte=now - timedelta(days=IDLE_DAYS)
    )
    peaks = samples.values("queue", "gpu_class").annotate(most=Max("allocated_gpus")).order_by()
    own = nominal_of(Quota.objects.filter(queue__in=led).in_force(now))
    for loan in in_force(cluster, now):
        if (loan.lender_id, loan.gpu_class_id) in own:
            own[loan.lender_id, loan.gpu_class_id] -= loan.gpus
    classes = {one.pk: one for one in cluster.gpu_classes.all()}
    found = [
        Idle(led[row["queue"]], classes[row["gpu_class"]], _whole(left - row["most"]))
        for row in peaks
        if (left := own.get((row["queue"], row["gpu_class"]), 0)) > 0
    ]
    most = sorted(found, key=lambda one: (-one.gpus, one.queue.path))
    return [one for one in most if one.gpus][:MOST_IDLE]


def _whole(milli: float) -> int:
    """Whole GPUs of it, milli-GPU."""
    return max(0, int(milli // MILLI)) * MILLI


@page_view
def index(request: PersonRequest, cluster: str) -> HttpResponse:
    found = opened(request, cluster)
    context = {
        "cluster": found,
        "page": page(request, found),
        "leads": led_queues(request.user).filter(cluster=found).exists(),
    }
    return render(request, "web/loans/loans.html", context)


def opened(request: PersonRequest, cluster: str) -> Cluster:
    """The cluster if the person has anything to do with its loans, else Http404."""
    found = get_cluster(request, cluster)
    if not may_open(request.user, found):
        raise Http404
    return found


def get_loan(request: PersonRequest, cluster: Cluster, pk: int) -> QuotaLoan:
    return get_object_or_404(visible_loans(request.user), cluster=cluster, pk=pk)


@page_view
def one(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    found = opened(request, cluster)
    return show(request, get_loan(request, found, pk))


def show(
    request: PersonRequest, loan: QuotaLoan, fault: ServiceError | None = None, status: int = 200
) -> HttpResponse:
    """The page of one loan: its terms, and what the next step would do before its button."""
    may = verbs(loan, led_of(request.user, loan.cluster))
    row = rows([loan], figures(loan.cluster, sides_of([loan])))[0]
    effects = _effects(loan, may)
    answer = effects.answer if effects and LoanVerb.CONSENT in may else None
    on, sides = with_the_loan(row, answer)
    context: dict[str, Any] = {
        "cluster": loan.cluster,
        "loan": loan,
        "may": may,
        "verb": "Borrow" if loan.state == LoanState.OFFERED else "Lend",
        "row": row,
        "axis": on,
        "sides": sides,
        "recalled_end": recalled_end(loan),
        "lent_gpus": loan.gpus / MILLI,
        "is_running": loan.state in RUNNING,
        "told": readable(request.user, loan.cluster, effects.answer)
        if effects and effects.answer
        else None,
        **plans.context_of(effects),
        "fault": fault,
    }
    return render(request, "web/loans/loan.html", context, status=status)


def _effects(loan: QuotaLoan, may: set[LoanVerb]) -> PlanState | None:
    """What consent would do, or a recall once its notice is over; None where neither is theirs."""
    gpus = loan.gpus if LoanVerb.CONSENT in may else -loan.gpus
    if not may & {LoanVerb.CONSENT, LoanVerb.RECALL}:
        return None
    return plans.ask(loan.cluster, LOAN, of_loan(loan, gpus))
