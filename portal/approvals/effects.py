"""What a granted request brings about, and what its end takes back.

Quotas carry their own range, so they begin and end by themselves, to the second; a queue is made when the
request begins; access is read from the requests in force. All run in the transaction of the step.
"""

from __future__ import annotations

from datetime import datetime

from portal.accounts.models import User
from portal.approvals.models import QuotaRequest
from portal.approvals.states import GRANTED, Kind
from portal.approvals.wishes import Wish
from portal.teams.namespaces import made_for
from scheduling.models import QuotaChange, Stop
from scheduling.services.errors import ServiceError
from scheduling.services.queues.shift import Shift, edited_since, shift_quotas
from scheduling.services.queues.tree import change_queue, create_queue, delete_queue


def grant(request: QuotaRequest, *, by: User | None, now: datetime) -> None:
    """Save the quotas of a request that was just approved, for the whole of its range.

    Raises QuotaError, or ServiceError, where they would not hold.
    """
    if not request.is_about_quota:
        return
    shift = Wish.of(request).shift(now, gpus=request.amount)
    reason = f"{request}: {request.decision or request.reason}"
    request.changes.set(shift_quotas(shift, author=by, reason=" ".join(reason.split())))


def begin(request: QuotaRequest, *, by: User | None) -> None:
    """What happens at its beginning. Raises ServiceError where it cannot."""
    if request.kind != Kind.QUEUE:
        return
    if request.queue is None:
        raise ServiceError("gone", f"The queue {request.place} is gone.", "Ask below another one.")
    made = create_queue(
        parent=request.queue,
        name=request.name,
        author=by or request.decider,
        namespace=made_for(request.name),
    )
    request.made_queue = made
    request.save(update_fields=["made_queue"])


def take_back(request: QuotaRequest, *, by: User, now: datetime) -> str:
    """What a revocation undoes, from now on; in words where it leaves something as it is."""
    if request.is_about_quota:
        return _take_back_quotas(request, by=by, now=now)
    if request.kind == Kind.QUEUE and request.made_queue is not None:
        return _take_back_queue(request, by=by)
    return ""


def _take_back_quotas(request: QuotaRequest, *, by: User, now: datetime) -> str:
    changes = list(request.changes.all())
    if request.queue is None or not changes:
        return "Its queue is gone."
    wish = Wish.of(request)
    found = wish.found_class()
    if found is None:
        return f"The class {request.gpu_class} is gone."
    start = max(now, min(change.effective_from for change in changes))
    given = wish.shift(now, gpus=request.amount)
    back = Shift(given.queue, found, -given.gpus, start, request.ends_at, given.field, given.giver)
    if edit := edited_since(back, changes, now, known=_on_top(request)):
        by_whom = f" by {edit.author}" if edit.author else ""
        return f"The quotas were edited{by_whom} since, so they stay as they are."
    request.changes.add(*shift_quotas(back, author=by, reason=f"{request} is revoked"))
    return ""


def _on_top(request: QuotaRequest) -> list[int]:
    """Changes that came from other requests: they added to this one's figures and left them standing."""
    others = QuotaRequest.objects.filter(cluster=request.cluster).exclude(pk=request.pk)
    return list(
        QuotaChange.objects.filter(requests__in=others).values_list("pk", flat=True).distinct()
    )


def _take_back_queue(request: QuotaRequest, *, by: User) -> str:
    queue = request.made_queue
    assert queue is not None  # noqa: S101 - asked before
    try:
        delete_queue(queue=queue, author=by)
    except ServiceError as refused:
        change_queue(queue=queue, author=by, stop=Stop.HOLD)
        return f"{refused.sentence} It takes no new work instead."
    request.made_queue = None
    return ""


def is_renewed(request: QuotaRequest) -> bool:
    """Whether another request goes on with what this one gave."""
    return request.renewals.filter(state__in=GRANTED).exists()
