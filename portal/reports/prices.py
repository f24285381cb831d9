"""What GPU-hours of a report cost: the price of each class on the day, and who may read it."""

from __future__ import annotations

from datetime import datetime

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.reports.scope import Scope
from portal.teams.access import own_queues
from portal.teams.rights import rights_of
from scheduling.services.ledger.prices import Change, PricePeriod, changes_of, cut


def stretches(scope: Scope, start: datetime, end: datetime) -> list[PricePeriod]:
    """[start, end) cut where a price of a class of the scope changed. One query a scope."""
    return cut(scope.classes, changes_in(scope), start, end)


def changes_in(scope: Scope) -> list[Change]:
    """Of prices of its classes. One query a scope."""
    return scope.once("prices", lambda: changes_of(scope.classes))


def may_read(user: User, scope: Scope) -> bool:
    """Whether the person reads the costs of every queue of the scope."""
    if rights_of(user).everywhere(Capability.COSTS):
        return True  # at the root, too: costs are read wherever they reach
    known = own_queues(user, Capability.COSTS).filter(pk__in=list(scope.queues))
    return known.count() == len(scope.queues)
