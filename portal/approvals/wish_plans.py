"""What a request would do: planned on the live cluster when it is submitted, and anew when it is opened."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from portal.approvals.loans.previews import with_loans
from portal.approvals.models import QuotaRequest
from portal.approvals.plan_faults import or_fault
from portal.approvals.states import Kind
from portal.approvals.wishes import Wish
from scheduling.models import MILLI, Queue
from scheduling.services.queues.shift import Shift, figures, sums
from scheduling.services.queues.values import Field
from scheduling.services.studies.whatif.documents import COLUMNS
from scheduling.services.studies.whatif.preview import Document, preview

Json = dict[str, Any]
PARTS = (4, 2)
"""Would a quarter, or a half, do as well?"""


def attached(request: QuotaRequest) -> Json:
    """The preview to keep with a request; where none can be made, the sentence that says why."""
    return or_fault(lambda: of_wish(Wish.of(request), request.cluster.now(), gpus=request.amount))


def of_wish(wish: Wish, now: datetime, *, gpus: int | None = None) -> Json:
    """What it would do if it began at once. Raises ServiceError where that cannot be planned."""
    if wish.kind == Kind.ACCESS:
        return {}
    if wish.kind == Kind.QUEUE:
        document = [{"kind": "queue", "queue": wish.name, "parent": _name(wish.queue)}]
        return preview(wish.queue.cluster, document)
    shift = replace(wish.shift(now, gpus), start=now)
    lesser = {amount / MILLI: _document(replace(shift, gpus=amount)) for amount in _lesser(shift)}
    whole = _document(shift)
    answer = preview(wish.queue.cluster, whole, lesser=lesser)
    forms = [*lesser.items(), (shift.gpus / MILLI, whole)]
    answer["again"] = {"base": _document(shift, before=True), "forms": forms}
    answer["gpus"] = shift.gpus / MILLI
    moved = figures(shift, now)
    answer["figures"] = [[one.queue.name, _gpus(one.before), _gpus(one.after)] for one in moved]
    if shift.field == Field.NOMINAL:
        answer["sums"] = [asdict(one) for one in sums(moved, shift.gpu_class, now)]
    return answer


def _name(queue: Queue) -> str:
    return "" if queue.is_root else queue.name


def _document(shift: Shift, *, before: bool = False) -> Document:
    """What is granted with it, or ``before`` it."""
    column = COLUMNS[shift.field]
    changes = [
        {
            "kind": "quota",
            "queue": one.queue.name,
            "gpu_class": shift.gpu_class.name,
            column: _gpus(one.before if before else one.after),
        }
        for one in figures(shift, shift.start)
    ]
    return with_loans(shift.queue.cluster, changes)


def _gpus(milli: int | None) -> float | None:
    return None if milli is None else milli / MILLI


def _lesser(shift: Shift) -> list[int]:
    """Smaller whole amounts, ascending."""
    whole = shift.gpus // MILLI
    return sorted({whole // part * MILLI for part in PARTS if whole // part})
