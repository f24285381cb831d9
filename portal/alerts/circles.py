"""The people who hear of a rule: its first circle when it fires, its second where nobody acknowledged
that."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.alerts.models import Firing, Rule, Tell
from portal.approvals.loans.who import leads_of
from portal.teams.models import Membership
from scheduling.models import Cluster


def first_circle(rule: Rule, firing: Firing, now: datetime) -> Iterable[User]:
    """Operators stand in where there is no lead or no owner to tell."""
    if rule.tell == Tell.OWNER and firing.workload is not None:
        return User.objects.filter(username=firing.workload.user, is_active=True)
    if rule.tell == Tell.LEADS:
        place = firing.workload.queue if firing.workload is not None else firing.queue
        found = list(leads_of(place)) if place is not None else []
        if found:
            return found
    return _holders(rule.cluster, Capability.OPERATE, now)


def second_circle(rule: Rule, now: datetime) -> list[User]:
    """The rule's people and the members of its team; administrators where that is nobody."""
    found = {
        user.pk: user
        for user in User.objects.filter(username__in=rule.escalate_people, is_active=True)
    }
    if rule.escalate_team_id is not None:
        memberships = Membership.objects.in_force(now).filter(
            team=rule.escalate_team_id, user__is_active=True
        )
        found |= {row.user_id: row.user for row in memberships.select_related("user")}
    chosen = [found[pk] for pk in sorted(found)]
    return chosen or _holders(rule.cluster, Capability.ADMINISTER, now)


def _holders(cluster: Cluster, capability: Capability, now: datetime) -> list[User]:
    """Everybody who may do that on the whole cluster."""
    memberships = Membership.objects.in_force(now).filter(
        team__queue__cluster=cluster, team__queue__parent=None, user__is_active=True
    )
    rows = memberships.select_related("user", "persona").order_by("user_id")
    found = {row.user_id: row.user for row in rows if capability in row.persona.grants}
    return list(found.values())
