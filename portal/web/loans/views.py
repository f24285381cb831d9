"""Loans of the queues that one leads, and one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render

from portal.accounts.models import User
from portal.approvals.loans.doors import recalled_end
from portal.approvals.loans.models import LoanOffer, QuotaLoan
from portal.approvals.loans.states import OVER, RUNNING, WAITING, LoanVerb
from portal.approvals.loans.who import (
    led_of,
    led_queues,
    may_open,
    open_offers,
    verbs,
    visible_loans,
)
from portal.display.entitlement import Axis, Bar, Figures, axis, bar
from portal.plans import asking as plans
from portal.plans.asking import PlanState
from portal.plans.kinds import LOAN, of_loan
from portal.selectors.loans import guarantees_now
from portal.selectors.overview import figures_of
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.quotas.preview import readable
from scheduling.models import MILLI, Cluster, GpuClass, Queue, Quota, Share, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.errors import ServiceError
from scheduling.services.queues.lending import in_force, nominal_of

IDLE_DAYS, MOST_IDLE = 7, 8
LAST_OVER = 20
Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LoanSide:
    """A queue of a loan: its figures with what is lent, and its bar; None while the newest division is older
    than what it is guaranteed, and says nothing of its fair share."""

    queue: Queue
    figures: Figures
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class LoanRow:
    loan: QuotaLoan
    lender: LoanSide
    borrower: LoanSide
    axis: Axis
    ends_at: datetime | None

    @property
    def is_held(self) -> bool:
        """Whether the borrower holds all that it is guaranteed."""
        figures = self.borrower.figures
        return figures.allocated >= figures.nominal


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
    idle: list[Idle] = field(default_factory=list)
    over: list[QuotaLoan] = field(default_factory=list)

    @property
    def needs_me(self) -> int:
        return sum(mine for _, mine in self.waiting)


def page(user: User, cluster: Cluster) -> LoanPage:
    loans = visible_loans(user).filter(cluster=cluster)
    mine = led_of(user, cluster)
    offers = [Offer(one, one.left, one.lender_id in mine) for one in open_offers(user, cluster)]
    waiting = [
        (loan, LoanVerb.CONSENT in verbs(loan, mine)) for loan in loans.filter(state__in=WAITING)
    ]
    return LoanPage(
        waiting=sorted(waiting, key=lambda pair: not pair[1]),
        offers=offers,
        rows=rows(cluster, list(loans.filter(state__in=RUNNING))),
        idle=idle(user, cluster),
        over=list(loans.filter(state__in=OVER)[:LAST_OVER]),
    )


def rows(cluster: Cluster, loans: Sequence[QuotaLoan]) -> list[LoanRow]:
    sides = figures(cluster, [q for loan in loans for q in (loan.lender, loan.borrower)])
    on = axis(
        sides.get((queue.pk, loan.gpu_class_id), NOTHING)[0]
        for loan in loans
        for queue in (loan.lender, loan.borrower)
    )
    return [
        LoanRow(
            loan=loan,
            lender=_side(loan.lender, loan, sides, on),
            borrower=_side(loan.borrower, loan, sides, on),
            axis=on,
            ends_at=loan.term.ends_at if loan.term else None,
        )
        for loan in loans
    ]


NOTHING = (Figures(0, 0, 0, 0, 0), False)


def _side(
    queue: Queue, loan: QuotaLoan, sides: Mapping[Key, tuple[Figures, bool]], on: Axis
) -> LoanSide:
    own, is_divided = sides.get((queue.pk, loan.gpu_class_id), NOTHING)
    return LoanSide(queue, own, bar(queue.name, own, on) if is_divided else None)


def figures(cluster: Cluster, queues: Iterable[Queue]) -> dict[Key, tuple[Figures, bool]]:
    """(queue id, class id) -> figures, guaranteed as it is now, and whether the newest division knew that."""
    wanted = {queue.pk for queue in queues}
    guarantees = guarantees_now(cluster, wanted)
    shares = {(s.queue_id, s.gpu_class_id): s for s in Share.objects.filter(queue__in=wanted)}
    found = {}
    for key in guarantees.keys() | shares.keys():
        granted, by = guarantees.get(key, (0, 0))
        divided = figures_of(shares.get(key), loan=by)
        found[key] = replace(divided, nominal=granted + by), divided.nominal == granted + by
    return found


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
        "page": page(request.user, found),
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
    row = rows(loan.cluster, [loan])[0]
    effects = _effects(loan, may)
    context: dict[str, Any] = {
        "cluster": loan.cluster,
        "loan": loan,
        "may": may,
        "row": row,
        "sides": (row.lender, row.borrower),
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
