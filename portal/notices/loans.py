"""Notices of loans between queues: the leads of the side that has to act, or of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.urls import reverse

from portal.accounts.models import User
from portal.approvals.loans.who import leads_of
from portal.approvals.models import QuotaLoan
from portal.display.format import when
from portal.notices.models import Kind
from portal.notices.outbox import settle, tell
from scheduling.models import MILLI, Announcement

LENDER, BORROWER, BOTH = ("lender",), ("borrower",), ("lender", "borrower")
EVENTS: Mapping[str, tuple[tuple[str, ...], str, Kind]] = {
    "loan.ask": (LENDER, "is asked for, and it is your turn", Kind.NEEDS_ME),
    "loan.offer": (BORROWER, "is offered, and it is your turn", Kind.NEEDS_ME),
    "loan.consent": (BOTH, "runs", Kind.DECIDED),
    "loan.decline": (BOTH, "was declined", Kind.DECIDED),
    "loan.withdraw": (BOTH, "was withdrawn", Kind.DECIDED),
    "loan.recall": (BORROWER, "was recalled", Kind.ENDS),
    "loan.undo": (BORROWER, "runs on: its recall was undone", Kind.ENDS),
    "loan.give_back": (LENDER, "was given back", Kind.ENDS),
    "loan.near_end": (BOTH, "ends soon", Kind.ENDS),
    "loan.end": (BOTH, "has ended", Kind.ENDS),
}
"""Event -> (the leads of which sides are told, what, as which kind)."""


def hear(announcement: Announcement) -> None:
    """The subscriber: notices of one event of a loan."""
    loan = (
        QuotaLoan.objects.select_related("cluster", "lender", "borrower", "gpu_class", "term")
        .filter(pk=(announcement.after or {}).get("loan", 0))
        .first()
    )
    if loan is None or announcement.refused or announcement.kind not in EVENTS:
        return
    settle(loan)
    sides, said, kind = EVENTS[announcement.kind]
    what = f"{loan.lender.name} → {loan.borrower.name}, {loan.gpus / MILLI:g} {loan.gpu_class}"
    lines = [["Said", announcement.reason]] if announcement.reason else []
    for user in _people(loan, sides):
        if user.get_username() == announcement.actor:
            continue
        tell(
            user, kind, loan.cluster, source=f"event {announcement.pk}", about=str(loan),
            title=f"{loan}, {what}, {said}.", lines=[*lines, ["Until", _until(user, loan)]],
            address=reverse("web:loan", args=[loan.cluster.name, loan.pk]),
        )  # fmt: skip


def _people(loan: QuotaLoan, sides: Iterable[str]) -> Iterable[User]:
    found = (user for side in sides for user in leads_of(getattr(loan, side)))
    return {user.pk: user for user in found}.values()


def _until(user: User, loan: QuotaLoan) -> str:
    end: datetime = loan.term.ends_at if loan.term else loan.ends_at
    zone = user.display_time_zone or loan.cluster.display_time_zone
    return when(end, loan.cluster.now(), zone)
