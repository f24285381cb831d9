"""The doors by which people and teams are made, and which of them a person may see."""

from __future__ import annotations

import re
import secrets
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.accounts.capabilities import Capability
from portal.accounts.models import Persona, User
from portal.teams.access import is_admin, is_operator, places, team_queues
from portal.teams.memberships import administrators
from portal.teams.models import DirectoryPerson, Team
from portal.teams.names import check_person
from portal.teams.personas import check_admin
from portal.teams.rights import rights_of
from scheduling.models import Queue
from scheduling.services import events
from scheduling.services.errors import ServiceError

USER_NAME = re.compile(r"[a-z0-9]([a-z0-9._@-]{0,61}[a-z0-9])?")
"""As Kubernetes reads it back from the cluster: no prefix of its own parts, nothing to escape."""


def named_person(username: str, *, field: str) -> str:
    """The name of somebody active, or empty as it came. Raises ServiceError at ``field``."""
    if username and not User.objects.filter(username=username, is_active=True).exists():
        raise ServiceError(
            "unknown_person",
            "Nobody here has that name.",
            "Type a name as People shows it.",
            field=field,
        )
    return username


def visible_people(user: User) -> QuerySet[User]:
    """Oneself, and the members of one's teams and those below; everybody for whoever administers."""
    if is_admin(user):
        return User.objects.all()
    seen = Team.objects.filter(queue__in=team_queues(user))
    return User.objects.filter(Q(pk=user.pk) | Q(memberships__team__in=seen)).distinct()


def visible_teams(user: User) -> QuerySet[Team]:
    return Team.objects.filter(queue__in=team_queues(user))


def led_teams(user: User) -> QuerySet[Team]:
    """Teams in which the user gives and takes personas."""
    return Team.objects.filter(queue__in=Queue.objects.filter(places(user, Capability.MEMBERS)))


def visible_personas(user: User) -> QuerySet[Persona]:
    """Those of one's teams and of those below; all for whoever hands personas out or looks after all."""
    if is_admin(user) or is_operator(user) or may_add_people(user):
        return Persona.objects.all()
    return Persona.objects.filter(memberships__team__in=visible_teams(user)).distinct()


def may_add_people(user: User) -> bool:
    return any(rights_of(user).holding(Capability.MEMBERS)) or is_admin(user)


@transaction.atomic
def add_person(
    *, by: User, username: str, first_name: str = "", last_name: str = "", email: str = ""
) -> tuple[User, str]:
    """A person and the password with which they sign in first, shown this once. Raises ServiceError."""
    if not may_add_people(by):
        check_admin(by)
    username = username.strip()
    if not USER_NAME.fullmatch(username):
        raise ServiceError(
            "bad_name",
            f"{username or 'Nothing'} is no user name.",
            "Use lower-case letters, digits, '.', '-', '_' and '@', at most 63 characters.",
            field="username",
        )
    check_person(username, by)
    if User.objects.filter(username__iexact=username).exists():
        raise ServiceError(
            "name_taken", "That name is taken.", "Choose another name.", field="username"
        )
    password = secrets.token_urlsafe(12)
    person = User.objects.create_user(
        username, email, password, first_name=first_name, last_name=last_name, made_by=by
    )
    events.announce("person.added", actor=by, subject=username, after={"name": username})
    return person, password


@transaction.atomic
def set_active(*, by: User, person: User, active: bool) -> None:
    """Deactivating ends every session and has what the person queued wait. Raises ServiceError."""
    check_admin(by)
    if not active and not administrators().exclude(pk=person.pk).exists():
        raise ServiceError(
            "last_admin",
            f"{person} is the last who administers this installation.",
            "Give another person the persona first.",
        )
    DirectoryPerson.objects.filter(user=person).update(left=False)
    switch(by=by, person=person, active=active)


def switch(*, by: User | None, person: User, active: bool) -> None:
    """For whoever has judged that it may be: sessions end at once, tokens count no more."""
    person.is_active = active
    person.save(update_fields=["is_active"])
    if not active:
        person.sessions.all().delete()
    kind = "person.activated" if active else "person.deactivated"
    events.announce(kind, actor=by, subject=person.get_username(), after={"active": active})


@transaction.atomic
def save_team(*, by: User, name: str, queue: Queue, team: Team | None = None) -> Team:
    """Make a team of ``queue``, or rename and rebind one. Raises ServiceError at a field."""
    check_admin(by)
    name = name.strip()
    if not name or len(name) > 63 or not name.isprintable() or "/" in name:
        raise ServiceError(
            "bad_name", "A team needs a name.", "Write up to 63 characters, no '/'.", field="name"
        )
    others = Team.objects.exclude(pk=team.pk) if team else Team.objects.all()
    if others.filter(name=name).exists():
        raise ServiceError(
            "name_taken", f"There is a team {name}.", "Choose another name.", field="name"
        )
    if taken := others.filter(queue=queue).first():
        raise ServiceError(
            "queue_taken",
            f"{queue.name} belongs to the team {taken}.",
            "Choose another queue.",
            field="queue",
        )
    before = _as_json(team) if team else None
    found = team or Team()
    found.name, found.queue = name, queue
    found.save()
    _tell(
        "team.changed" if team else "team.created", by, found, before=before, after=_as_json(found)
    )
    return found


@transaction.atomic
def delete_team(*, by: User, team: Team) -> None:
    """Raises ServiceError while somebody is in it."""
    check_admin(by)
    if team.memberships.exists():
        raise ServiceError(
            "has_members", f"{team} has members.", "Take their personas there first."
        )
    _tell("team.deleted", by, team, before=_as_json(team), after=None)
    team.delete()


def _as_json(team: Team) -> dict[str, Any]:
    return {"name": team.name, "queue": team.queue.name}


def _tell(kind: str, by: User, team: Team, **changed: Any) -> None:
    place = team.queue
    events.announce(
        kind, actor=by, cluster=place.cluster, queue=place.path, subject=team.name, **changed
    )
