"""Which requests wait for whom."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from portal.accounts.models import User
from portal.approvals.models import QuotaRequest
from portal.approvals.states import DECIDABLE, ENDED, GRANTED, OPEN, State
from portal.approvals.who import Decider, visible_requests
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


def to_decide(user: User, cluster: Cluster) -> QuerySet[QuotaRequest]:
    """Those that the person may see and somebody is to decide, or the person to change."""
    return narrowed(visible_requests(user).filter(cluster=cluster), user, "decide")


def needing(user: User, cluster: Cluster) -> int:
    """How many wait for this person: to decide, or to change what they asked for."""
    decider = Decider(user)
    return sum(
        row.author_id == user.pk if row.state == State.CHANGES else decider.has_turn(row)
        for row in to_decide(user, cluster)
    )
