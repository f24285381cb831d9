"""The doors of requests: one verb each, one transaction, used by pages and API alike."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from portal.accounts.models import User
from portal.approvals import automatic, effects
from portal.approvals.models import Comment, QuotaRequest, Step
from portal.approvals.moves import move, tell
from portal.approvals.states import EDITABLE, Kind, State, Verb
from portal.approvals.who import check, has_lead, may_ask, may_renew
from portal.approvals.wish_plans import attached
from portal.approvals.wishes import Wish, WishError, check_draft, refuse
from portal.approvals.wishes import check as check_wish
from scheduling.models import Queue
from scheduling.services.errors import ServiceError

MOST_NOTE = 500
MOST_COMMENT = 2000
MOST_OPEN = 50
"""Requests of one person that are neither granted nor over."""


@transaction.atomic
def save_draft(*, by: User, wish: Wish, request: QuotaRequest | None = None) -> QuotaRequest:
    """Keep what was typed, to go on with later: a new draft, or ``request`` as it is now wanted.

    Raises ServiceError: ``forbidden``, ``moved_on`` where it is not theirs to edit any more, WishError.
    """
    _check_asks(by, wish.queue)
    check_draft(wish)
    now = wish.queue.cluster.now()
    if request is None:
        return _new(by, wish, now)
    check(by, request, Verb.SAVE)
    now_is = State(QuotaRequest.objects.values_list("state", flat=True).get(pk=request.pk))
    to = now_is if now_is in EDITABLE else State.DRAFT
    return move(request, Verb.SAVE, to, by=by, **wish.columns())


def _check_asks(by: User, queue: Queue) -> None:
    if not may_ask(by, queue):
        raise ServiceError(
            "forbidden", "You may not ask for this queue.", "Ask its lead.", field="queue"
        )


def _new(by: User, wish: Wish, now: datetime, renews: QuotaRequest | None = None) -> QuotaRequest:
    if QuotaRequest.objects.filter(author=by, state__in=[*_OPEN]).count() >= MOST_OPEN:
        raise ServiceError(
            "too_many", f"You have {MOST_OPEN} open requests.", "Withdraw one that is not needed."
        )
    made = QuotaRequest.objects.create(
        cluster=wish.queue.cluster, author=by, created_at=now, since=now, renews=renews,
        **wish.columns(),
    )  # fmt: skip
    Step.objects.create(request=made, at=now, verb=Verb.SAVE, by=by, after=State.DRAFT)
    return made


_OPEN = (State.DRAFT, State.CHANGES, State.SUBMITTED, State.APPROVER)


def submit(*, by: User, request: QuotaRequest) -> QuotaRequest:
    """Hand it to whoever decides: the lead where there is one, else an approver, or the parent's rule.

    Raises WishError where it asks for what cannot be, ServiceError ``forbidden``, ``moved_on``.
    """
    check(by, request, Verb.SUBMIT)
    check_wish(Wish.of(request), request.cluster.now(), reader=by)
    # Outside of the transaction: planning takes its time, and holds no row meanwhile.
    preview = attached(request)
    with transaction.atomic():
        if _passes_at_once(request, preview):
            return request
        to = State.SUBMITTED if has_lead(request) else State.APPROVER
        cleared: dict[str, Any] = {"forwarder": None, "decider": None, "decision": ""}
        return move(request, Verb.SUBMIT, to, by=by, preview=preview, **cleared)


def _passes_at_once(request: QuotaRequest, preview: dict[str, Any]) -> bool:
    """Whether the parent's rule approved it. Where the quotas would not hold, people decide."""
    now = request.cluster.now()
    found = automatic.passing(request, now)
    if found.rule is None or not found.passes:
        return False
    # Serialised, so that two at once do not both stay below the threshold together.
    type(found.rule).objects.select_for_update().get(pk=found.rule.pk)
    if not automatic.passing(request, now).passes:
        return False
    try:
        with transaction.atomic():
            to = _granted_state(request, now)
            move(
                request, Verb.SUBMIT, to, by=request.author, note=automatic.note_of(found.rule),
                preview=preview, expected=preview, granted_gpus=request.gpus, granted_at=now,
                decider=None, decision=automatic.note_of(found.rule),
            )  # fmt: skip
            effects.grant(request, by=request.author, now=now)
    except ServiceError:
        request.refresh_from_db()
        return False
    return True


def submit_new(*, by: User, wish: Wish) -> QuotaRequest:
    """A new request, submitted at once; nothing is kept where it cannot be."""
    check_wish(wish, wish.queue.cluster.now(), reader=by)
    made = save_draft(by=by, wish=wish)
    return submit(by=by, request=made)


@transaction.atomic
def forward(
    *, by: User, request: QuotaRequest, giver: Queue | None = None, note: str = ""
) -> QuotaRequest:
    """The lead's step: to an approver, with a word on it, and from whom it is taken where that is said."""
    check(by, request, Verb.FORWARD)
    _check_note(note)
    more = _given_by(request, giver, by)
    return move(request, Verb.FORWARD, State.APPROVER, by=by, note=note, forwarder=by, **more)


def _given_by(request: QuotaRequest, giver: Queue | None, by: User) -> dict[str, Any]:
    """The column of a giver that is another than before, checked as its author's was."""
    if giver is None or giver == request.giver:
        return {}
    old, request.giver = request.giver, giver
    try:
        check_wish(Wish.of(request), request.cluster.now(), reader=by)
    except WishError as error:
        request.giver = old
        mine = [fault for fault in error.faults if fault.field in ("giver", "gpus")]
        refuse(mine)
    return {"giver": giver}


@transaction.atomic
def approve(
    *,
    by: User,
    request: QuotaRequest,
    note: str,
    gpus: int | None = None,
    ends_at: datetime | None = None,
    giver: Queue | None = None,
    expected: dict[str, Any] | None = None,
) -> QuotaRequest:
    """Grant it, or less of it: ``gpus`` (milli-GPU) and ``ends_at`` may be cut, ``giver`` said.

    In order: 1. four eyes and the bound of the approver; 2. claim the step; 3. save the quotas for the whole
    range, or begin what begins now. All or nothing. Raises ServiceError; QuotaError where sums would not
    hold.
    """
    now = request.cluster.now()
    _check_reason(note)
    if giver is not None and giver != request.giver:
        request.giver = giver
    granted = _cut(request, gpus)
    end = _cut_end(request, ends_at, now)
    check(by, request, Verb.APPROVE, gpus=granted)
    to = _granted_state(request, now)
    columns = {
        "decider": by, "decision": note, "granted_gpus": granted, "granted_at": now,
        "ends_at": end, "giver": request.giver, "expected": expected or {},
    }  # fmt: skip
    move(request, Verb.APPROVE, to, by=by, note=note, **columns)
    effects.grant(request, by=by, now=now)
    if to == State.ACTIVE:
        effects.begin(request, by=by)
    return request


def _cut(request: QuotaRequest, gpus: int | None) -> int | None:
    if not request.is_about_quota:
        return None
    amount = request.gpus or 0
    granted = amount if gpus is None else gpus
    if not 0 < granted <= amount:
        raise ServiceError(
            "bad_amount",
            f"The request is for {amount / 1000:g}.",
            f"Grant more than 0 and up to {amount / 1000:g}, or reject it.",
            field="gpus",
        )
    return granted


def _cut_end(request: QuotaRequest, ends_at: datetime | None, now: datetime) -> datetime | None:
    end = request.ends_at if ends_at is None else ends_at
    if end is None:
        return None
    if end <= request.begins(now):
        raise ServiceError(
            "in_the_past",
            f"It would end on {end:%d %b %Y %H:%M} UTC, before it begins.",
            "Ask for changes, so that its author says until when.",
            field="ends_at",
        )
    if request.ends_at is not None and end > request.ends_at:
        raise ServiceError(
            "longer_than_asked", "That is longer than was asked for.", "Choose an earlier end.",
            field="ends_at",
        )  # fmt: skip
    if request.kind == Kind.QUEUE:
        return None
    return end


def _granted_state(request: QuotaRequest, now: datetime) -> State:
    return State.SCHEDULED if request.begins(now) > now else State.ACTIVE


@transaction.atomic
def ask_changes(*, by: User, request: QuotaRequest, note: str) -> QuotaRequest:
    """Back to its author, with what should be otherwise."""
    check(by, request, Verb.ASK_CHANGES)
    _check_reason(note)
    return move(request, Verb.ASK_CHANGES, State.CHANGES, by=by, note=note, decision=note)


@transaction.atomic
def reject(*, by: User, request: QuotaRequest, note: str) -> QuotaRequest:
    check(by, request, Verb.REJECT)
    _check_reason(note)
    columns = {"decider": by, "decision": note}
    return move(request, Verb.REJECT, State.REJECTED, by=by, note=note, **columns)


@transaction.atomic
def withdraw(*, by: User, request: QuotaRequest) -> QuotaRequest:
    """Its author wants it no more."""
    check(by, request, Verb.WITHDRAW)
    return move(request, Verb.WITHDRAW, State.WITHDRAWN, by=by)


@transaction.atomic
def revoke(*, by: User, request: QuotaRequest, note: str) -> QuotaRequest:
    """Take back what was granted, from now on; what it was until now stays in the history."""
    check(by, request, Verb.REVOKE)
    _check_reason(note)
    now = request.cluster.now()
    move(request, Verb.REVOKE, State.REVOKED, by=by, note=note)
    request.outcome = effects.take_back(request, by=by, now=now)[:300]
    request.save(update_fields=["outcome", "made_queue"])
    return request


def renew(*, by: User, request: QuotaRequest) -> QuotaRequest:
    """Ask for the same again, for as long as before, from where it ends. One click: it is submitted at once.

    Raises ServiceError ``renewed`` where that is asked for already, and as ``submit`` does.
    """
    if request.queue is None or not may_ask(by, request.queue):
        raise ServiceError("forbidden", "You may not ask for this queue.", "Ask its lead.")
    if not may_renew(by, request) or request.ends_at is None:
        raise ServiceError(
            "renewed", f"{request} has no end to go on from, or goes on already.",
            "Look at its renewal, or ask for something new.",
        )  # fmt: skip
    now = request.cluster.now()
    length = request.ends_at - (request.starts_at or request.granted_at or request.created_at)
    start = request.ends_at if request.ends_at > now else None
    columns = Wish.of(request).columns() | {
        "starts_at": start,
        "ends_at": (start or now) + length,
        "gpus": request.granted_gpus or request.gpus,
        "reason": request.reason,
    }
    wish = _wish(columns)
    check_wish(wish, now, reader=by)
    try:
        with transaction.atomic():
            made = _new(by, wish, now, renews=request)
    except IntegrityError as error:
        raise ServiceError(
            "renewed", f"{request} is being renewed already.", "Look at its renewal."
        ) from error
    tell(request, "request.renew", by=by, note=f"By {made}.")
    return submit(by=by, request=made)


def _wish(columns: dict[str, Any]) -> Wish:
    return Wish(**{name: value for name, value in columns.items() if name != "place"})


@transaction.atomic
def comment(*, by: User, request: QuotaRequest, text: str) -> Comment:
    """A word of whoever sees it. Raises ServiceError at ``text``."""
    said = text.strip()
    if not said or len(said) > MOST_COMMENT:
        raise ServiceError(
            "bad_comment",
            "There is nothing to say." if not said else "That is too long.",
            f"Write up to {MOST_COMMENT:,} characters.",
            field="text",
        )
    made = Comment.objects.create(request=request, at=request.cluster.now(), by=by, text=said)
    tell(request, "request.comment", by=by, note=said[:200])
    return made


def _check_reason(note: str) -> None:
    if not note.strip():
        raise ServiceError(
            "missing", "A decision needs a reason.", "Write why; both sides read it.", field="note"
        )
    _check_note(note)


def _check_note(note: str) -> None:
    if len(note) > MOST_NOTE:
        raise ServiceError(
            "too_long", "That is too long.", f"Use {MOST_NOTE} characters.", field="note"
        )
