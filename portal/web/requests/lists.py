"""Requests in a list: grouped by who has to act, each with the word for how it stands before the reader."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.paginator import Page
from django.db.models import Case, Count, QuerySet, Value, When

from portal.accounts.models import User
from portal.approvals.inbox import narrowed, needing, to_decide
from portal.approvals.models import QuotaRequest
from portal.approvals.moves import title
from portal.approvals.states import ENDED, GRANTED, OPEN, Kind, State
from portal.approvals.who import Decider, visible_requests
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest
from scheduling.models import Cluster

LAST_ENDED = 3
FILTERS = {
    "open": "Open and in force",
    "decide": "For me to decide",
    "mine": "Asked by me",
    "ended": "Ended",
    "all": "All",
}
GROUPS = ("Need you", "Drafts", "With others", "Scheduled and in force", "Ended")
NEED, DRAFT, OTHERS, FORCE, OVER = range(len(GROUPS))
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
    page: Page[Any]


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


def listed(request: PersonRequest, cluster: Cluster, chosen: str) -> RequestPage:
    """The part that the address asks for of the requests that ``chosen`` names, grouped; those of which
    somebody has to act come first."""
    user, chosen = request.user, chosen if chosen in FILTERS else "open"
    rows = visible_requests(user).filter(cluster=cluster)
    turns = needing(user, to_decide(cluster))
    found = rows.filter(pk__in=turns) if chosen == "decide" else narrowed(rows, user, chosen)
    found = found.annotate(group=_group(turns)).order_by("group", "-since", "-pk")
    page, decider = page_of(request, found), Decider(user)
    groups = _grouped(page, found, user, decider)
    if chosen == "open" and not page.has_next():
        groups += _last_ended(rows, user, decider)
    return RequestPage(groups, chosen, rows.count(), page)


def _group(turns: Iterable[int]) -> Case:
    """The index in ``GROUPS``."""
    return Case(
        When(pk__in=list(turns), then=Value(NEED)),
        When(state=State.DRAFT, then=Value(DRAFT)),
        When(state__in=OPEN, then=Value(OTHERS)),
        When(state__in=GRANTED, then=Value(FORCE)),
        default=Value(OVER),
    )


def _grouped(
    page: Page[Any], found: QuerySet[Any], user: User, decider: Decider
) -> list[RequestGroup]:
    """Of the rows of ``page``, each group with how many there are of it where the others are elsewhere."""
    groups: dict[int, RequestGroup] = {}
    for row in page:
        group = groups.setdefault(row.group, RequestGroup(GROUPS[row.group]))
        group.entries.append(entry(row, user, decider))
    if page.has_other_pages():
        counted = dict(found.order_by().values_list("group").annotate(Count("pk")))
        for rank, group in groups.items():
            group.of = counted[rank]
    return list(groups.values())


def _last_ended(rows: QuerySet[QuotaRequest], user: User, decider: Decider) -> list[RequestGroup]:
    over = rows.filter(state__in=ENDED)
    count = over.count()
    if not count:
        return []
    last = [entry(row, user, decider) for row in over[:LAST_ENDED]]
    return [RequestGroup(GROUPS[OVER], last, count)]


def ended_boost(user: User, cluster: Cluster, queue_id: int, now: datetime) -> QuotaRequest | None:
    """The last of the queue's that ended and may be asked for again."""
    rows = visible_requests(user).filter(cluster=cluster, queue=queue_id, state=State.EXPIRED)
    return rows.filter(ends_at__lte=now).first()
