"""Templates of the submit form: kept by a person, for themselves or for a team that they are in."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Q, QuerySet

from portal.accounts.models import User
from portal.teams.models import SubmitTemplate, Team
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError

MOST = 100
"""Templates of one person on one cluster."""


def usable(user: User, cluster: Cluster) -> QuerySet[SubmitTemplate]:
    """One's own, and those of the teams that one is in."""
    mine = Q(owner=user) | Q(team__in=teams_of(user, cluster))
    found = SubmitTemplate.objects.filter(mine, cluster=cluster)
    return found.select_related("owner", "team")


def teams_of(user: User, cluster: Cluster) -> QuerySet[Team]:
    """Teams with which a template of ``cluster`` may be shared."""
    return Team.objects.filter(memberships__user=user, queue__cluster=cluster)


def save(
    user: User, cluster: Cluster, *, name: str, team: str, values: Mapping[str, str]
) -> SubmitTemplate:
    """Keep ``values`` under ``name``; one of that name is replaced.

    Raises ServiceError(field='template_name' or 'template_team').
    """
    name = " ".join(name.split())
    if not name or len(name) > 63 or not name.isprintable():
        raise ServiceError(
            "bad_name",
            "A template needs a name.",
            "Write up to 63 characters.",
            field="template_name",
        )
    shared = teams_of(user, cluster).filter(name=team).first() if team else None
    if team and shared is None:
        raise ServiceError(
            "no_such_team",
            "You are in no such team.",
            "Choose one of yours.",
            field="template_team",
        )
    templates = SubmitTemplate.objects.filter(owner=user, cluster=cluster)
    if not templates.filter(name=name).exists() and templates.count() >= MOST:
        raise ServiceError(
            "too_many", f"You keep {MOST} templates already.", "Delete one.", field="template_name"
        )
    made, _ = SubmitTemplate.objects.update_or_create(
        cluster=cluster, owner=user, name=name, defaults={"team": shared, "values": dict(values)}
    )
    return made


def delete(user: User, cluster: Cluster, pk: int) -> bool:
    """Only its owner deletes it; whether there was one."""
    gone, _ = SubmitTemplate.objects.filter(owner=user, cluster=cluster, pk=pk).delete()
    return bool(gone)
