"""What is done to a loan by its name in an address, the same on pages and by REST."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from portal.accounts.models import User
from portal.approvals.loans import doors, previews
from portal.approvals.loans.models import QuotaLoan
from portal.approvals.loans.who import leads


@dataclass(frozen=True, slots=True)
class LoanTerms:
    """``gpus`` (milli-GPU) of a consent to less, ``note`` of a refusal or a recall."""

    gpus: int | None = None
    note: str = ""


Act = Callable[[User, QuotaLoan, LoanTerms], QuotaLoan]


def _consent(by: User, loan: QuotaLoan, typed: LoanTerms) -> QuotaLoan:
    """With what is expected of it, planned now."""
    gpus = loan.gpus if typed.gpus is None else typed.gpus
    return doors.consent(by=by, loan=loan, gpus=gpus, expected=previews.planned(loan, gpus))


ACTS: Mapping[str, Act] = {
    "consent": _consent,
    "decline": lambda by, loan, typed: doors.decline(by=by, loan=loan, note=typed.note),
    "withdraw": lambda by, loan, _: doors.withdraw(by=by, loan=loan),
    "recall": lambda by, loan, typed: doors.recall(by=by, loan=loan, note=typed.note),
    "undo": lambda by, loan, _: doors.undo_recall(by=by, loan=loan),
    "give-back": lambda by, loan, _: doors.give_back(by=by, loan=loan),
}


def act_of(user: User, loan: QuotaLoan, verb: str) -> Act | None:
    """None for whoever leads neither side, as for a verb that there is not. The door looks at the rest."""
    is_party = leads(user, loan.lender) or leads(user, loan.borrower)
    return ACTS.get(verb) if is_party else None
