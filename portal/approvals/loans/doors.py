"""The doors of loans: one verb each, one transaction, used by pages and API alike.

Each step is claimed by a conditional update, so that of two who act at once one is told what the other did.
The effect on the division is written in the same transaction.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.approvals.loans.models import LoanOffer, QuotaLoan
from portal.approvals.loans.states import MOVES, RUNNING, LoanState, LoanVerb
from portal.approvals.loans.who import leads, led_of, verbs
from portal.approvals.moves import MOVED_ON
from scheduling.models import MILLI, GpuClass, Loan, Queue
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.queues.faults import figure
from scheduling.services.queues.loans import check, lend, set_end

MOST_REASON, MOST_NOTICE_H = 500, 24 * 30


@transaction.atomic
def offer_to_all(
    *, by: User, lender: Queue, gpu_class: GpuClass, gpus: int, until: datetime, notice_h: int
) -> LoanOffer:
    """Offer idle nominal quota to whoever asks. Raises ServiceError at the field that is wrong."""
    _check_leads(by, lender, "lender")
    _check_notice(notice_h)
    cluster, now = lender.cluster, lender.cluster.now()
    check(lender, None, gpu_class, gpus, now, until)
    made = LoanOffer.objects.create(
        cluster=cluster, lender=lender, gpu_class=gpu_class, gpus=gpus, ends_at=until,
        notice_h=notice_h, author=by, created_at=now,
    )  # fmt: skip
    _announce("loan.offer_to_all", lender, by, str(made), {"offer": made.pk, **_terms(made)})
    cluster.touch()
    return made


@transaction.atomic
def withdraw_offer(*, by: User, offer: LoanOffer) -> None:
    """What was lent of it goes on until its own end."""
    _check_leads(by, offer.lender, "lender")
    now = offer.cluster.now()
    if not LoanOffer.objects.filter(pk=offer.pk, withdrawn_at=None).update(withdrawn_at=now):
        raise ServiceError(MOVED_ON, f"{offer} was withdrawn already.", "Read the page again.")
    _announce("loan.offer_withdrawn", offer.lender, by, str(offer), {"offer": offer.pk})
    offer.cluster.touch()


@transaction.atomic
def propose(
    *,
    by: User,
    lender: Queue,
    borrower: Queue,
    gpu_class: GpuClass,
    gpus: int,
    until: datetime,
    reason: str,
    notice_h: int,
    asks: bool,
    offer: LoanOffer | None = None,
) -> QuotaLoan:
    """Ask for a loan for a queue that ``by`` leads, or offer one; the other side consents. Raises
    ServiceError at the field that is wrong."""
    _check_leads(by, borrower if asks else lender, "borrower" if asks else "lender")
    _check_reason(reason)
    _check_notice(notice_h)
    now = lender.cluster.now()
    if offer is not None and (offer.lender, offer.gpu_class) != (lender, gpu_class):
        raise ServiceError(
            "other_offer",
            f"{offer} is of {offer.lender.name}, {offer.gpu_class}.",
            "Ask for that, or without an offer.",
            field="offer",
        )
    _check_offer(offer, gpus, until)
    check(lender, borrower, gpu_class, gpus, now, until)
    made = QuotaLoan.objects.create(
        cluster=lender.cluster, lender=lender, borrower=borrower, gpu_class=gpu_class, gpus=gpus,
        ends_at=until, notice_h=notice_h, offer=offer, author=by, reason=reason.strip(),
        created_at=now, since=now, state=LoanState.ASKED if asks else LoanState.OFFERED,
    )  # fmt: skip
    _tell(made, LoanVerb.ASK if asks else LoanVerb.OFFER, by, reason)
    made.cluster.touch()
    return made


@transaction.atomic
def consent(
    *, by: User, loan: QuotaLoan, gpus: int | None = None, expected: dict[str, Any] | None = None
) -> QuotaLoan:
    """Let it run, or less of it: ``gpus`` (milli-GPU) may be cut. Raises ServiceError where it would not
    hold any more."""
    check_may(by, loan, LoanVerb.CONSENT)
    amount = loan.gpus if gpus is None else gpus
    if not 0 < amount <= loan.gpus:
        raise ServiceError(
            "bad_amount",
            f"The loan is of {figure(loan.gpus)}.",
            f"Lend more than 0 and up to {figure(loan.gpus)}, or decline.",
            field="gpus",
        )
    if loan.offer is not None:
        # Serialised, so that two who take of one offer do not take more than it is.
        LoanOffer.objects.select_for_update().get(pk=loan.offer.pk)
        _check_offer(loan.offer, amount, loan.ends_at)
    row = _move(loan, LoanVerb.CONSENT, by=by, decider=by, gpus=amount, expected=expected or {})
    row.term = lend(
        lender=row.lender, borrower=row.borrower, gpu_class=row.gpu_class, gpus=amount,
        start=row.cluster.now(), end=row.ends_at,
    )  # fmt: skip
    row.save(update_fields=["term"])
    return row


@transaction.atomic
def decline(*, by: User, loan: QuotaLoan, note: str = "") -> QuotaLoan:
    check_may(by, loan, LoanVerb.DECLINE)
    return _move(loan, LoanVerb.DECLINE, by=by, note=note, decider=by)


@transaction.atomic
def withdraw(*, by: User, loan: QuotaLoan) -> QuotaLoan:
    check_may(by, loan, LoanVerb.WITHDRAW)
    return _move(loan, LoanVerb.WITHDRAW, by=by)


@transaction.atomic
def recall(*, by: User, loan: QuotaLoan, note: str = "") -> QuotaLoan:
    """It ends once the notice has passed, or as agreed where that is sooner."""
    check_may(by, loan, LoanVerb.RECALL)
    row = _move(loan, LoanVerb.RECALL, by=by, note=note)
    if row.term is not None:
        set_end(row.term, recalled_end(row))
    return row


def recalled_end(loan: QuotaLoan) -> datetime:
    """When a recall made now would end it."""
    return min(loan.ends_at, loan.cluster.now() + loan.notice)


@transaction.atomic
def undo_recall(*, by: User, loan: QuotaLoan) -> QuotaLoan:
    """It runs on until the end that was agreed. Raises ServiceError where that was lent on since."""
    check_may(by, loan, LoanVerb.UNDO)
    row = _move(loan, LoanVerb.UNDO, by=by)
    term = row.term
    if term is not None and term.ends_at < row.ends_at:
        check(row.lender, row.borrower, row.gpu_class, row.gpus, term.ends_at, row.ends_at)
        set_end(term, row.ends_at)
    return row


@transaction.atomic
def give_back(*, by: User, loan: QuotaLoan) -> QuotaLoan:
    """The borrower needs it no more: it ends now."""
    check_may(by, loan, LoanVerb.GIVE_BACK)
    row = _move(loan, LoanVerb.GIVE_BACK, by=by)
    if row.term is not None:
        set_end(row.term, row.cluster.now())
    return row


@transaction.atomic
def end(loan: QuotaLoan) -> QuotaLoan:
    """Its time is over; the division knew that to the second."""
    return _move(loan, LoanVerb.END, by=None)


@transaction.atomic
def near_end(loan: QuotaLoan) -> None:
    """Say once that it ends soon."""
    fresh = QuotaLoan.objects.filter(pk=loan.pk, warned=False, state__in=RUNNING)
    if fresh.update(warned=True):
        _tell(loan, LoanVerb.NEAR_END, None)


def check_may(by: User, loan: QuotaLoan, verb: LoanVerb) -> None:
    """Raises ServiceError: ``moved_on`` where it is past that step, ``forbidden`` where it is not theirs."""
    state = LoanState(QuotaLoan.objects.values_list("state", flat=True).get(pk=loan.pk))
    term = Loan.objects.filter(agreed=loan).first()
    if term is not None and term.ends_at <= loan.cluster.now():
        # The clock notes it a little later; the division has known it since.
        raise _moved_on(loan, LoanState.ENDED)
    if state not in MOVES[verb][0]:
        raise _moved_on(loan, state)
    loan.state = state
    if verb not in verbs(loan, led_of(by, loan.cluster)):
        raise ServiceError(
            "forbidden", "That is the other side's to do.", "Ask whoever leads that queue."
        )


def _move(
    loan: QuotaLoan, verb: LoanVerb, *, by: User | None, note: str = "", **columns: Any
) -> QuotaLoan:
    """Claim the step. Raises ServiceError ``moved_on`` where another was first."""
    sources, to = MOVES[verb]
    now = loan.cluster.now()
    mine = QuotaLoan.objects.filter(pk=loan.pk, state__in=sources)
    if not mine.update(state=to, since=now, **columns):
        state = LoanState(QuotaLoan.objects.values_list("state", flat=True).get(pk=loan.pk))
        raise _moved_on(loan, state)
    for name, value in {**columns, "state": to, "since": now}.items():
        setattr(loan, name, value)
    _tell(loan, verb, by, note)
    loan.cluster.touch()
    return loan


def _moved_on(loan: QuotaLoan, state: LoanState) -> ServiceError:
    label = state.label.lower()
    return ServiceError(
        MOVED_ON, f"{loan} has moved on: it is {label} now.", "Read it again, then decide anew."
    )


def _tell(loan: QuotaLoan, verb: LoanVerb, by: User | None, note: str = "") -> None:
    _announce(
        f"loan.{verb}", loan.lender, by, str(loan), {"loan": loan.pk, **_terms(loan)}, note[:500]
    )


def _terms(loan: QuotaLoan | LoanOffer) -> dict[str, Any]:
    """As an event tells them. The other side is not named: whoever reads of one side may not see the
    other."""
    return {
        "gpu_class": loan.gpu_class.name,
        "gpus": loan.gpus / MILLI,
        "ends_at": loan.ends_at.isoformat(),
    }


def _announce(
    kind: str, lender: Queue, by: User | None, subject: str, after: dict[str, Any], note: str = ""
) -> None:
    announce(
        kind, actor=by, cluster=lender.cluster, queue=lender.path, subject=subject, after=after, reason=note
    )  # fmt: skip


def _check_leads(by: User, queue: Queue, field: str) -> None:
    if not leads(by, queue):
        raise ServiceError(
            "forbidden", f"You do not lead {queue.name}.", "Ask whoever leads it.", field=field
        )


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise ServiceError(
            "missing", "The other side wants to know why.", "Say why.", field="reason"
        )
    if len(reason.strip()) > MOST_REASON:
        raise ServiceError(
            "too_long", "The reason is too long.", f"Use at most {MOST_REASON} characters.", field="reason"
        )  # fmt: skip


def _check_notice(notice_h: int) -> None:
    if not 0 <= notice_h <= MOST_NOTICE_H:
        raise ServiceError(
            "bad_notice",
            "So long a notice is not kept.",
            f"Write 0 to {MOST_NOTICE_H} hours.",
            field="notice_h",
        )


def _check_offer(offer: LoanOffer | None, gpus: int, until: datetime) -> None:
    """Raises ServiceError where it is more, or longer, than what is offered still."""
    if offer is None:
        return
    now = LoanOffer.objects.with_left().get(pk=offer.pk)
    if now.withdrawn_at is not None:
        raise ServiceError(
            "withdrawn", f"{offer} was withdrawn.", "Choose another offer, or ask without one.", field="offer"
        )  # fmt: skip
    if gpus > now.left:
        left = figure(now.left)
        raise ServiceError(
            "more_than_offered",
            f"{offer} has {left} left.",
            f"Take {left} at most." if now.left else "Choose another offer.",
            field="gpus",
        )
    if until > now.ends_at:
        raise ServiceError(
            "longer_than_offered",
            f"It is offered until {now.ends_at:%d %b %Y %H:%M} UTC.",
            "Choose an end by then.",
            field="until",
        )
