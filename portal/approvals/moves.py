"""The one door through which a request changes its state.

``move`` claims the step by a conditional update: of two who act at once, one counts no row and is told what
the other did. The caller's transaction holds the claim together with what the step brings about.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.approvals.models import QuotaRequest, Step
from portal.approvals.states import MOVES, State, Verb
from scheduling.models import MILLI
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce

MOVED_ON = "moved_on"
"""Code of the refusal that somebody else was first."""


def move(
    request: QuotaRequest, verb: Verb, to: State, *, by: User | None, note: str = "", **columns: Any
) -> QuotaRequest:
    """Take the step, set ``columns`` with it, keep it in the time line, and announce it.

    Inside a transaction of the caller. Raises ServiceError ``moved_on`` where the request is not in a state
    that has the step.
    """
    assert transaction.get_connection().in_atomic_block  # noqa: S101 - a claim alone is half a step
    sources, targets = MOVES[verb]
    if to not in targets:
        raise ValueError(f"{verb} does not lead to {to}")
    now = request.cluster.now()
    # Locks the row, so that what it was is what it is until the end of the transaction.
    row = QuotaRequest.objects.select_for_update(of=("self",)).get(pk=request.pk)
    mine = QuotaRequest.objects.filter(pk=request.pk, state__in=sources)
    if not mine.update(state=to, since=now, **columns):
        raise _moved_on(row, now)
    for name, value in {**columns, "state": to, "since": now}.items():
        setattr(request, name, value)
    Step.objects.create(
        request=request, at=now, verb=verb, by=by, before=row.state, after=to, note=note[:500]
    )
    if verb != Verb.SAVE:
        tell(request, f"request.{verb}", by=by, note=note, before=row.state)
    request.cluster.touch()
    return request


def _moved_on(request: QuotaRequest, now: Any) -> ServiceError:
    last = request.steps.select_related("by").last()
    by = f" by {last.by}" if last and last.by else ""
    label = State(request.state).label
    inside = label[:1].lower() + label[1:]
    return ServiceError(
        MOVED_ON,
        f"{request} has moved on: it is {inside} now{by}.",
        "Read it again, then decide anew.",
    )


def tell(
    request: QuotaRequest, kind: str, *, by: User | None, note: str = "", before: str = ""
) -> None:
    """Announce what happened to a request, to the audit log and to whoever else listens."""
    announce(
        kind,
        actor=by,
        cluster=request.cluster,
        queue=request.place,
        subject=f"{request} {title(request)}",
        before={"state": before} if before else None,
        after={"request": request.pk, "state": request.state, **as_event(request)},
        reason=note,
    )


def as_event(request: QuotaRequest) -> dict[str, Any]:
    """What it is about as an event tells it, what it does not say left out. The giver stands in the change
    of quotas, for whoever may read of both sides."""
    event: dict[str, Any] = {
        "kind": request.kind,
        "gpu_class": request.gpu_class,
        "priority_class": request.priority_class,
        "gpus": request.amount / MILLI,
        "name": request.name,
        "starts_at": request.starts_at.isoformat() if request.starts_at else "",
        "ends_at": request.ends_at.isoformat() if request.ends_at else "",
    }
    return {name: value for name, value in event.items() if value}


def title(request: QuotaRequest) -> str:
    """'alignment +8 h100-80gb', 'vision/evals', 'pretraining may use l4'."""
    queue = request.place.rpartition("/")[2] or request.cluster.name
    if request.kind == "queue":
        return f"{queue}/{request.name}"
    if request.kind == "access":
        return f"{queue} may use {request.gpu_class or request.priority_class}"
    limit = " limit" if request.figure == "borrowing_limit" else ""
    return f"{queue}{limit} +{request.amount / MILLI:g} {request.gpu_class}"
