"""Requests in a list: grouped by who has to act, each with the word for how it stands before the reader."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import QuerySet

from portal.accounts.models import User
from portal.approvals.inbox import narrowed
from portal.approvals.models import QuotaRequest
from portal.approvals.moves import title
from portal.approvals.states import DECIDABLE, EDITABLE, ENDED, GRANTED, Kind, State
from portal.approvals.who import Decider, visible_requests
from scheduling.models import Cluster

MOST = 100
"""Rows of a list; the rest is behind a narrower filter."""
LAST_ENDED = 3
FILTERS = {
    "open": "Open and in force",
    "decide": "For me to decide",
    "mine": "Asked by me",
    "ended": "Ended",
    "all": "All",
}
GROUPS = ("Need you", "Drafts", "With others", "Scheduled and in force", "Ended")
KINDS = {Kind.QUOTA: "quota", Kind.BOOST: "boost", Kind.QUEUE: "new queue", Kind.ACCESS: "access"}
BADGES = {
    State.DRAFT: ("pending", "neutral"),
    State.SUBMITTED: ("pending", "neutral"),
    State.APPROVER: ("pending", "neutral"),
    State.CHANGES: ("evicted", "warn"),
    State.SCHEDULED: ("admitted", "info"),
    State.ACTIVE: ("running", "ok"),
    State.EXPIRING: ("clock", "warn"),
    State.EXPIRED: ("finished", "neutral"),
    State.RENEWED: ("finished", "neutral"),
    State.REJECTED: ("close", "err"),
    State.REVOKED: ("close", "warn"),
    State.WITHDRAWN: ("close", "neutral"),
}


@dataclass(frozen=True, slots=True)
class Badge:
    """Glyph, word and tone of how a request stands before one reader."""

    glyph: str
    tone: str
    word: str


@dataclass(frozen=True, slots=True)
class RequestEntry:
    request: QuotaRequest
    title: str
    kind: str
    badge: Badge
    needs_me: bool


@dataclass(slots=True)
class RequestGroup:
    name: str
    entries: list[RequestEntry] = field(default_factory=list)
    of: int | None = None
    """How many there are, where not all are listed."""


@dataclass(frozen=True, slots=True)
class RequestPage:
    groups: list[RequestGroup]
    chosen: str
    total: int
    more: bool


def badge(request: QuotaRequest, user: User, *, turn: bool) -> Badge:
    if turn:
        return Badge("mark", "info", "Your turn")
    glyph, tone = BADGES[State(request.state)]
    return Badge(glyph, tone, _word(request, user))


def _word(request: QuotaRequest, user: User) -> str:
    state = State(request.state)
    if state == State.CHANGES and request.author is not None:
        whom = "you" if request.author == user else request.author
        return f"Changes asked of {whom}"
    if state in GRANTED and request.decider_id is None:
        return f"{state.label}, auto-approved"
    return str(state.label)


def entry(request: QuotaRequest, user: User, decider: Decider) -> RequestEntry:
    turn = decider.has_turn(request)
    mine = request.author_id == user.pk and request.state == State.CHANGES
    return RequestEntry(
        request, title(request), KINDS[Kind(request.kind)], badge(request, user, turn=turn), turn or mine
    )  # fmt: skip


def listed(user: User, cluster: Cluster, chosen: str) -> RequestPage:
    """The requests that ``chosen`` names, grouped; those of which somebody has to act come first."""
    chosen = chosen if chosen in FILTERS else "open"
    rows = visible_requests(user).filter(cluster=cluster)
    decider = Decider(user)
    found = [entry(row, user, decider) for row in narrowed(rows, user, chosen)[: MOST + 1]]
    if chosen == "decide":
        found = [one for one in found if one.needs_me]
    groups = _grouped(found[:MOST])
    if chosen == "open":
        groups += _last_ended(rows, user, decider)
    return RequestPage(groups, chosen, rows.count(), len(found) > MOST)


def _grouped(entries: Iterable[RequestEntry]) -> list[RequestGroup]:
    groups = {name: RequestGroup(name) for name in GROUPS}
    for one in entries:
        groups[_group_of(one)].entries.append(one)
    return [group for group in groups.values() if group.entries]


def _group_of(one: RequestEntry) -> str:
    state = one.request.state
    if one.needs_me:
        return "Need you"
    if state == State.DRAFT:
        return "Drafts"
    if state in (*DECIDABLE, *EDITABLE):
        return "With others"
    return "Scheduled and in force" if state in GRANTED else "Ended"


def _last_ended(rows: QuerySet[QuotaRequest], user: User, decider: Decider) -> list[RequestGroup]:
    over = rows.filter(state__in=ENDED)
    count = over.count()
    if not count:
        return []
    last = [entry(row, user, decider) for row in over[:LAST_ENDED]]
    return [RequestGroup("Ended", last, count)]


def ended_boost(user: User, cluster: Cluster, queue_id: int, now: datetime) -> QuotaRequest | None:
    """The last of the queue's that ended and may be asked for again."""
    rows = visible_requests(user).filter(cluster=cluster, queue=queue_id, state=State.EXPIRED)
    return rows.filter(ends_at__lte=now).first()
