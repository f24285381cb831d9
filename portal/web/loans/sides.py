"""Both sides of a loan: their figures, and their bars on one axis. Milli-GPU."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from portal.approvals.loans.models import QuotaLoan
from portal.approvals.loans.states import LoanVerb
from portal.approvals.loans.who import verbs
from portal.approvals.previews import tree_order
from portal.display.entitlement import Axis, Bar, Figures, axis, bar
from portal.selectors.loans import guarantees_now
from portal.selectors.overview import figures_of
from scheduling.models import MILLI, Cluster, GpuClass, Queue, Share

Key = tuple[int, int]
Sides = Mapping[Key, tuple[Figures, bool]]
"""(queue id, class id) -> figures, guaranteed as it is now, and whether the newest division knew that."""


@dataclass(frozen=True, slots=True)
class LoanSide:
    """A queue of a loan: its figures with what is lent, and its bar; None while the newest division is older
    than what it is guaranteed, and says nothing of its fair share."""

    queue: Queue
    figures: Figures
    bar: Bar | None
    when: str = "now"


@dataclass(frozen=True, slots=True)
class LoanDivision:
    """What loans make of the guarantees of a class; each row with its depth."""

    gpu_class: GpuClass
    rows: Sequence[tuple[int, Queue, Figures]]


@dataclass(frozen=True, slots=True)
class LoanRow:
    loan: QuotaLoan
    lender: LoanSide
    borrower: LoanSide
    axis: Axis
    ends_at: datetime | None
    may_recall: bool = False

    @property
    def is_held(self) -> bool:
        """Whether the borrower holds all that it is guaranteed."""
        figures = self.borrower.figures
        return figures.allocated >= figures.nominal


def rows(loans: Sequence[QuotaLoan], sides: Sides, led: Collection[int] = ()) -> list[LoanRow]:
    """``sides``: the figures of theirs; ``led``: keys of the queues that the reader leads."""
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
            may_recall=LoanVerb.RECALL in verbs(loan, led),
        )
        for loan in loans
    ]


def with_the_loan(row: LoanRow, answer: Mapping[str, Any] | None) -> tuple[Axis, list[LoanSide]]:
    """Each side as it is, and below it with the loan that waits, once a plan has its fair share then."""
    found: list[LoanSide] = []
    for side, by in ((row.lender, -row.loan.gpus), (row.borrower, row.loan.gpus)):
        shares = _shares_of(answer or {}, side.queue, row.loan.gpu_class)
        if shares is None:
            found.append(side)
            continue
        now = replace(side.figures, fair_share=shares[0])
        found.append(replace(side, figures=now))
        found.append(replace(side, figures=_moved(now, by, shares[1]), when="with the loan"))
    on = axis(one.figures for one in found)
    return on, [
        replace(one, bar=bar(f"{one.queue.name} {one.when}", one.figures, on))
        if one.bar or one.when != "now"
        else one
        for one in found
    ]


def _shares_of(
    answer: Mapping[str, Any], queue: Queue, gpu_class: GpuClass
) -> tuple[float, float] | None:
    """Before and after, of one plan: the newest division may be of another moment."""
    rows = (row for row in answer.get("shares", ()) if row["queue"] == queue.name)
    mine = next((row for row in rows if row["gpu_class"] == gpu_class.name), None)
    if mine is None:
        return None
    before, after = mine["fair_share"]
    return before * MILLI, after * MILLI


def _moved(own: Figures, by: int, share: float) -> Figures:
    """With ``by`` more of guarantee. What of it would be lent or kept back no plan has said."""
    moved = replace(own, nominal=own.nominal + by, loan=own.loan + by, fair_share=share)
    return replace(moved, lent=0.0, kept_back=0.0)


NOTHING = (Figures(0, 0, 0, 0, 0), False)


def _side(queue: Queue, loan: QuotaLoan, sides: Sides, on: Axis) -> LoanSide:
    own, is_divided = sides.get((queue.pk, loan.gpu_class_id), NOTHING)
    return LoanSide(queue, own, bar(queue.name, own, on) if is_divided else None)


def sides_of(loans: Iterable[QuotaLoan]) -> set[int]:
    """Keys of their queues."""
    return {key for loan in loans for key in (loan.lender_id, loan.borrower_id)}


def figures(cluster: Cluster, queues: Collection[int]) -> dict[Key, tuple[Figures, bool]]:
    wanted = set(queues)
    guarantees = guarantees_now(cluster, wanted)
    shares = {(s.queue_id, s.gpu_class_id): s for s in Share.objects.filter(queue__in=wanted)}
    found = {}
    for key in guarantees.keys() | shares.keys():
        granted, by = guarantees.get(key, (0, 0))
        divided = figures_of(shares.get(key), loan=by)
        found[key] = replace(divided, nominal=granted + by), divided.nominal == granted + by
    return found


def divisions(
    loans: Sequence[QuotaLoan], sides: Sides, led: Mapping[int, Queue]
) -> list[LoanDivision]:
    """By class that something is lent of: the queues that gave and got, those beside them that the reader
    leads, and the sums above."""
    classes = {loan.gpu_class_id: loan.gpu_class for loan in loans}
    return [
        LoanDivision(
            found, _division([one for one in loans if one.gpu_class_id == key], sides, led)
        )
        for key, found in classes.items()
    ]


def _division(
    loans: Sequence[QuotaLoan], sides: Sides, led: Mapping[int, Queue]
) -> list[tuple[int, Queue, Figures]]:
    own = {queue.pk: queue for loan in loans for queue in (loan.lender, loan.borrower)}
    above = {queue.parent_id for queue in own.values()} & led.keys()
    near = {key: q for key, q in led.items() if key in above or q.parent_id in above} | own
    ordered = tree_order(near.values())
    least = min(queue.path.count("/") for queue in ordered)
    return [
        (
            queue.path.count("/") - least,
            queue,
            sides.get((queue.pk, loans[0].gpu_class_id), NOTHING)[0],
        )
        for queue in ordered
    ]
