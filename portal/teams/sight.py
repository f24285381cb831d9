"""What a reader is told about memberships: those of teams that they see, and their own."""

from __future__ import annotations

from django.db.models import Prefetch, Q

from portal.accounts.models import User
from portal.teams.access import sees_everything
from portal.teams.models import Membership, MembershipQuerySet
from portal.teams.people import visible_people, visible_teams
from portal.teams.rights import Grant, rights_of


def visible_memberships(reader: User) -> MembershipQuerySet:
    return Membership.objects.filter(Q(team__in=visible_teams(reader)) | Q(user=reader))


def memberships_for(reader: User) -> Prefetch[str]:
    """The memberships of people, as far as ``reader`` is told of them, for ``prefetch_related``."""
    rows = visible_memberships(reader).select_related("team__queue__cluster", "persona")
    return Prefetch("memberships", rows)


def person_for(reader: User, field: str) -> Prefetch[str]:
    """Whom ``field`` of a row names, None where ``reader`` does not see them, for ``prefetch_related``."""
    return Prefetch(field, visible_people(reader))


def grants_before(reader: User, person: User) -> list[Grant]:
    """What ``person`` has by memberships that ``reader`` is told of."""
    grants = rights_of(person).grants
    if reader == person or sees_everything(reader):
        return grants
    return [grant for grant in grants if _sees_team_of(reader, grant)]


def _sees_team_of(reader: User, grant: Grant) -> bool:
    """The rule of ``visible_teams``, asked of one membership."""
    return any(
        own.cluster_id == grant.cluster_id
        and (not own.path or grant.path == own.path or grant.path.startswith(f"{own.path}/"))
        for own in rights_of(reader).grants
    )
