"""The doors by which a person comes into a team, changes persona and leaves."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from portal.accounts.capabilities import Capability
from portal.accounts.models import Persona, User
from portal.teams.giving import check_end, check_gives
from portal.teams.models import Membership, Team
from scheduling.services import events
from scheduling.services.errors import ServiceError


@transaction.atomic
def set_member(
    *, by: User, team: Team, person: User, persona: Persona, until: datetime | None = None
) -> Membership:
    """Give ``person`` the persona in ``team``, in place of one they have there. Raises ServiceError."""
    rows = team.memberships.select_for_update().filter(user=person).select_related("persona")
    former = rows.first()
    check_gives(by, person=person, persona=persona, team=team)
    _check(person, until)
    check_end(by, persona, team, until)
    if former is not None:
        check_gives(by, person=person, persona=former.persona, team=team)
        _keep_an_admin(former, instead=persona)
    before = _as_json(former) if former else {}
    membership = former or Membership(team=team, user=person)
    membership.persona, membership.until, membership.given_by = persona, until, by
    membership.save()
    kind = "member.changed" if former else "member.added"
    _tell(kind, by, membership, before, _as_json(membership))
    return membership


@transaction.atomic
def remove_member(*, by: User, membership: Membership) -> None:
    """Take the persona away. Raises ServiceError."""
    team, person = membership.team, membership.user
    check_gives(by, person=person, persona=membership.persona, team=team)
    _keep_an_admin(membership, instead=None)
    _tell("member.removed", by, membership, _as_json(membership), {})
    membership.delete()


def _check(person: User, until: datetime | None) -> None:
    if not person.is_active:
        raise ServiceError(
            "not_active", f"{person} is deactivated.", "Activate them first.", field="user"
        )
    if until is not None and until <= timezone.now():
        raise ServiceError(
            "in_the_past", "That time is past.", "Choose a later one, or none.", field="until"
        )


def _keep_an_admin(membership: Membership, *, instead: Persona | None) -> None:
    """Raises ServiceError where nobody would be left who could undo it."""
    rules = Capability.ADMINISTER
    if rules not in membership.persona.grants or (instead and rules in instead.grants):
        return
    others = administrators().exclude(pk=membership.user_id)
    if not others.exists():
        raise ServiceError(
            "last_admin",
            f"{membership.user} is the last who administers this installation.",
            "Give another person the persona first.",
            field="persona",
        )


def administrators() -> QuerySet[User]:
    """Active people who administer the installation."""
    ruling = Persona.objects.filter(grants__has_key=Capability.ADMINISTER.value)
    memberships = Membership.objects.in_force(timezone.now()).filter(persona__in=ruling)
    active = User.objects.filter(is_active=True)
    return (
        active.filter(memberships__in=memberships) | active.filter(is_superuser=True)
    ).distinct()


def _as_json(membership: Membership) -> dict[str, Any]:
    until = membership.until
    facts = {"persona": membership.persona.name}
    return facts if until is None else {**facts, "until": until.isoformat()}


def _tell(
    kind: str, by: User, membership: Membership, before: dict[str, Any], after: dict[str, Any]
) -> None:
    team = membership.team
    events.announce(
        kind,
        actor=by,
        cluster=team.queue.cluster,
        queue=team.queue.path,
        subject=f"{membership.user}, {team}",
        before=before,
        after=after,
    )
