"""Which requests wait for whom."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from portal.accounts.models import User
from portal.approvals.models import QuotaRequest
from portal.approvals.states import DECIDABLE, ENDED, GRANTED, OPEN, State
from portal.approvals.who import BESIDE, Decider, sees
from scheduling.models import Cluster


def narrowed(rows: QuerySet[QuotaRequest], user: User, chosen: str) -> QuerySet[QuotaRequest]:
    """Those that ``chosen`` names: open, decide, mine, ended; anything else is all."""
    wanted = {
        "open": Q(state__in=[*OPEN, *GRANTED]),
        "decide": Q(state__in=DECIDABLE) | Q(state=State.CHANGES, author=user),
        "mine": Q(author=user),
        "ended": Q(state__in=ENDED),
    }
    return rows.filter(wanted.get(chosen, Q()))


def waiting_in(cluster: Cluster) -> QuerySet[QuotaRequest]:
    """Those that somebody is to decide, or their author to change, whoever may see them."""
    return QuotaRequest.objects.filter(cluster=cluster, state__in=[*DECIDABLE, State.CHANGES])


def to_decide(cluster: Cluster) -> list[QuotaRequest]:
    """The same, read."""
    return list(waiting_in(cluster).select_related(*BESIDE))


def needing(user: User, rows: Iterable[QuotaRequest]) -> list[int]:
    """Keys of those ``to_decide`` that wait for this person."""
    decider = Decider(user)
    return [
        row.pk
        for row in rows
        if (row.author_id == user.pk if row.state == State.CHANGES else decider.has_turn(row))
        and sees(user, row)
    ]
