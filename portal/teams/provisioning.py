"""What the organisation's directory does by SCIM: people come and leave, groups get and lose members.

It looks after people without a password of Weir's own and those connected with the provider. Superusers,
programs and people with a password alone are none of its: it neither sees nor stops who is let in when the
directory is away. It gives no persona: that the rules of groups do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from rest_framework.request import Request

from portal.accounts import doors
from portal.accounts.models import User
from portal.accounts.provider import fault_of
from portal.boundary.reading import one_line
from portal.teams.directory import keep_in_step
from portal.teams.memberships import administrators
from portal.teams.models import DirectoryGroup, DirectoryPerson
from portal.teams.names import OF_A_CLUSTER
from portal.teams.people import switch
from scheduling.services import events
from scheduling.services.errors import ServiceError

NAMES = {"first_name": 150, "last_name": 150, "email": 254}
"""Field -> its longest text."""


def managed() -> QuerySet[User]:
    """Whom the directory looks after."""
    connected = Exists(SocialAccount.objects.filter(user=OuterRef("pk")))
    none = Q(password="") | Q(password__startswith=UNUSABLE_PASSWORD_PREFIX)
    known = Q(directory_person__isnull=False)
    rows = User.objects.filter(
        none | connected | known, is_superuser=False, service_account__isnull=True
    )
    return rows.exclude(directory_person__gone=True).order_by("pk")


@transaction.atomic
def take_in(by: User, data: Mapping[str, Any], request: Request) -> User:
    """A person without a password, whom the provider signs in. Raises ServiceError: ``bad_name``,
    ``name_taken``."""
    name = data.get("username", "")
    fault = fault_of(name) or (
        "Clusters give rights to it." if OF_A_CLUSTER.fullmatch(name) else ""
    )
    if fault:
        raise ServiceError(
            "bad_name", f"{name or 'Nothing'} is no user name here. {fault}", "", field="userName"
        )
    if User.objects.filter(username__iexact=name).exists():
        raise _name_conflict(f"an account {name}", "userName")
    person = User(username=name, **_names(data))
    person.set_unusable_password()
    _save(person, f"an account {name}", "userName")
    DirectoryPerson.objects.create(user=person, external_id=data.get("external_id", ""))
    events.announce("person.added", actor=by, subject=name, after={"name": name, "by": "directory"})
    if data.get("active") is False:
        set_active(by, person, False, request)
    return person


@transaction.atomic
def change(by: User, person: User, data: Mapping[str, Any], request: Request) -> User:
    """What is not in ``told`` stays. Raises ServiceError: ``immutable`` for another user name, by which own
    work is found; ``deactivated_here``, ``last_admin``."""
    if data.get("username", person.username).lower() != person.username.lower():
        sentence = "User names stay: own work is found by them."
        raise ServiceError("immutable", sentence, "", field="userName")
    row, _ = DirectoryPerson.objects.get_or_create(user=person)
    if data.get("external_id", row.external_id) != row.external_id:
        row.external_id = data["external_id"]
    row.save()
    changed = {key: value for key, value in _names(data).items() if getattr(person, key) != value}
    if changed:
        before = {key: getattr(person, key) for key in changed}
        for key, value in changed.items():
            setattr(person, key, value)
        person.save(update_fields=list(changed))
        events.announce(
            "person.changed", actor=by, subject=person.username, before=before, after=changed
        )
    if "active" in data:
        set_active(by, person, data["active"], request)
    return person


@transaction.atomic
def remove(by: User, person: User, request: Request) -> None:
    """Deactivated for good, and out of every group; the name stays theirs, and so does what they did."""
    set_active(by, person, False, request)
    for group in person.directory_groups.all():
        _set_members(by, group, group.members.exclude(pk=person.pk), request)
    DirectoryPerson.objects.update_or_create(user=person, defaults={"gone": True})


@transaction.atomic
def set_active(by: User | None, person: User, active: bool, request: Request | None) -> None:
    """Without ``by`` it is what the directory was read to say. Raises ServiceError ``deactivated_here``,
    ``last_admin``."""
    if active == person.is_active:
        return
    row, _ = DirectoryPerson.objects.get_or_create(user=person)
    if active and not row.left:
        sentence = f"An admin deactivated {person} here."
        raise ServiceError("deactivated_here", sentence, "Only an admin activates them.")
    if not active and not administrators().exclude(pk=person.pk).exists():
        raise ServiceError(
            "last_admin", f"{person} is the last who administers this installation.", ""
        )
    switch(by=by, person=person, active=active)
    DirectoryPerson.objects.filter(pk=row.pk).update(left=not active)
    if not active:
        for token in person.api_tokens.all():
            doors.revoke_token(request, token, by=by)


def _names(data: Mapping[str, Any]) -> dict[str, str]:
    return {key: _fitting(key, data[key]) for key in NAMES if key in data}


def _fitting(key: str, text: str) -> str:
    one_line(text)
    return text[: NAMES[key]]


def _save(row: User | DirectoryGroup, what: str, field: str) -> None:
    """Of two at once the second finds out here, inside a savepoint of its own."""
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise _name_conflict(what, field) from None


def _name_conflict(what: str, field: str) -> ServiceError:
    return ServiceError("name_taken", f"There is {what} here already.", "", field=field)


# Groups


@transaction.atomic
def set_group(
    by: User,
    group: DirectoryGroup | None,
    *,
    name: str,
    external_id: str,
    members: Iterable[User],
    request: Request,
) -> DirectoryGroup:
    """Make one, or have it be so: whoever comes in or goes has what rules give from then on. Raises
    ServiceError ``name_taken``, ``bad_name``."""
    if not name or len(name) > 255 or not name.isprintable():
        raise ServiceError(
            "bad_name", "A group needs a name of up to 255 characters.", "", field="displayName"
        )
    others = DirectoryGroup.objects.exclude(pk=group.pk) if group else DirectoryGroup.objects.all()
    if others.filter(name=name).exists():
        raise _name_conflict(f"a group {name}", "displayName")
    found = group or DirectoryGroup()
    former = found.name
    found.name, found.external_id = name, external_id
    _save(found, f"a group {name}", "displayName")
    _set_members(by, found, members, request, renamed=former != name)
    return found


@transaction.atomic
def delete_group(by: User, group: DirectoryGroup, request: Request) -> None:
    _set_members(by, group, (), request)
    events.announce("directory.group_deleted", actor=by, subject=group.name)
    group.delete()


def _set_members(
    by: User,
    group: DirectoryGroup,
    members: Iterable[User],
    request: Request,
    *,
    renamed: bool = False,
) -> None:
    before, after = set(group.members.all()), set(members)
    if before != after or renamed:
        facts = {"members": sorted(user.username for user in after)}
        events.announce("directory.group_set", actor=by, subject=group.name, after=facts)
    group.members.set(after)
    for person in sorted(before | after if renamed else before ^ after, key=lambda one: one.pk):
        keep_in_step(
            person, person.directory_groups.order_by("name").values_list("name", flat=True), request
        )
