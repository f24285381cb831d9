"""What can be asked for, and the life of a request: its states, its verbs and where each leads.

draft ──submit──▶ submitted ──forward──▶ approver ──approve──▶ scheduled ──begin──▶ active
                      └────────────approve─────────────────────────┴──────────────────┤
changes ◀──ask for changes── submitted, approver ──reject──▶ rejected        expiring ─▶ expired, renewed
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import models


class Kind(models.TextChoices):
    QUOTA = "quota", "Quota"
    BOOST = "boost", "Boost"
    QUEUE = "queue", "Queue"
    ACCESS = "access", "Access"


class Figure(models.TextChoices):
    """Which figure of a queue a quota or a boost raises."""

    NOMINAL = "nominal", "Nominal quota"
    BORROWING_LIMIT = "borrowing_limit", "Borrowing limit"


class State(models.TextChoices):
    DRAFT = "draft", "Draft"
    SUBMITTED = "submitted", "With the lead"
    APPROVER = "approver", "With an approver"
    CHANGES = "changes", "Changes asked for"
    SCHEDULED = "scheduled", "Scheduled"
    ACTIVE = "active", "Active"
    EXPIRING = "expiring", "Expiring"
    EXPIRED = "expired", "Expired"
    RENEWED = "renewed", "Renewed"
    REJECTED = "rejected", "Rejected"
    REVOKED = "revoked", "Revoked"
    WITHDRAWN = "withdrawn", "Withdrawn"


EDITABLE = (State.DRAFT, State.CHANGES)
DECIDABLE = (State.SUBMITTED, State.APPROVER)
OPEN = (*EDITABLE, *DECIDABLE)
IN_FORCE = (State.ACTIVE, State.EXPIRING)
GRANTED = (State.SCHEDULED, *IN_FORCE)
ENDED = (State.EXPIRED, State.RENEWED, State.REJECTED, State.REVOKED, State.WITHDRAWN)


class Verb(models.TextChoices):
    """What is done to a request. The words are those of its time line."""

    SAVE = "save", "Draft"
    SUBMIT = "submit", "Submitted"
    FORWARD = "forward", "Forwarded"
    APPROVE = "approve", "Approved"
    ASK_CHANGES = "ask_changes", "Changes asked for"
    REJECT = "reject", "Rejected"
    WITHDRAW = "withdraw", "Withdrawn"
    BEGIN = "begin", "Begun"
    FAIL = "fail", "Could not begin"
    NEAR_END = "near_end", "Ends soon"
    EXPIRE = "expire", "Ended"
    REVOKE = "revoke", "Revoked"


MOVES: Mapping[Verb, tuple[tuple[State, ...], tuple[State, ...]]] = {
    Verb.SAVE: (EDITABLE, EDITABLE),
    Verb.SUBMIT: (EDITABLE, (*DECIDABLE, *GRANTED)),
    Verb.FORWARD: ((State.SUBMITTED,), (State.APPROVER,)),
    Verb.APPROVE: (DECIDABLE, GRANTED),
    Verb.ASK_CHANGES: (DECIDABLE, (State.CHANGES,)),
    Verb.REJECT: (DECIDABLE, (State.REJECTED,)),
    Verb.WITHDRAW: (OPEN, (State.WITHDRAWN,)),
    Verb.BEGIN: ((State.SCHEDULED,), IN_FORCE),
    Verb.FAIL: ((State.SCHEDULED,), (State.CHANGES,)),
    Verb.NEAR_END: ((State.ACTIVE,), (State.EXPIRING,)),
    Verb.EXPIRE: (GRANTED, (State.EXPIRED, State.RENEWED)),
    Verb.REVOKE: (GRANTED, (State.REVOKED,)),
}
"""Verb -> (from which states, to which)."""
