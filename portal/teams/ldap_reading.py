"""The directory (LDAP) is read by schedule: who has left it, who is back, and who is in which group now.

Between two sign-ins nobody else tells Weir. A directory that does not answer, or in which most of its people
are missing at once, changes nothing: that is a fault of a setting or of the directory, not news of people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db.models import QuerySet
from django.dispatch import receiver
from django.http import HttpRequest

from portal.accounts import ldap
from portal.accounts.audit import record
from portal.accounts.ldap_backend import answered
from portal.accounts.models import User
from portal.teams.directory import is_kept_by_directory, keep_in_step, seen_by
from portal.teams.models import DirectoryPerson
from portal.teams.provisioning import set_active
from scheduling.services.errors import ServiceError

FEW = 5
"""So many may be gone at once, whatever part of all they are."""
MOST_GONE = 0.5


@dataclass(frozen=True, slots=True)
class Passage:
    """What one reading changed. ``fault`` says why nothing was."""

    left: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    regrouped: tuple[str, ...] = ()
    fault: str = ""


@receiver(answered)
def note_groups(
    user: User, groups: list[str] | None, request: HttpRequest | None, **kwargs: Any
) -> None:
    """At a sign-in; whose groups the directory keeps by SCIM has those."""
    if groups is not None and not is_kept_by_directory(user):
        keep_in_step(user, groups, request)


def read() -> Passage:
    """A person who is not found leaves, with their sessions and tokens; one whom it has again comes back."""
    directory: ldap.Directory | None = settings.WEIR_LDAP
    if directory is None:
        return Passage()
    try:
        with ldap.reading(directory) as reader:
            there = {entry.key: entry for entry in reader.people()}
            known = list(_accounts())
            if fault := _fault(known, there):
                return _refused(fault)
            left, back = _seen_leaving(known, there), _seen_back(known, there)
            return Passage(left, back, _regrouped(known, there, reader))
    except ldap.AwayError as away:
        return _refused(away.why)


def _accounts() -> QuerySet[SocialAccount]:
    rows = SocialAccount.objects.filter(provider=ldap.PROVIDER_ID, user__is_superuser=False)
    return rows.select_related("user").order_by("pk")


def _fault(known: list[SocialAccount], there: Mapping[str, ldap.LdapPerson]) -> str:
    active = [one for one in known if one.user.is_active]
    gone = sum(one.uid not in there for one in active)
    if gone <= FEW or gone <= MOST_GONE * len(active):
        return ""
    return (
        f"{gone} of {len(active)} people are not found: look at WEIR_LDAP_BASE, _FILTER and _KEY."
    )


def _refused(fault: str) -> Passage:
    record("directory.unread", None, user=None, refused=True, why=fault)
    return Passage(fault=fault)


def _seen_leaving(
    known: Iterable[SocialAccount], there: Mapping[str, ldap.LdapPerson]
) -> tuple[str, ...]:
    gone = [one.user for one in known if one.user.is_active and one.uid not in there]
    return tuple(user.username for user in gone if _turned(user, active=False))


def _seen_back(
    known: Iterable[SocialAccount], there: Mapping[str, ldap.LdapPerson]
) -> tuple[str, ...]:
    """Whom an admin deactivated here stays so."""
    left = set(DirectoryPerson.objects.filter(left=True).values_list("user_id", flat=True))
    back = [one.user for one in known if one.user_id in left and one.uid in there]
    return tuple(user.username for user in back if _turned(user, active=True))


def _turned(user: User, *, active: bool) -> bool:
    try:
        set_active(None, user, active, None)
    except ServiceError as refusal:
        record("directory.kept", None, user=user, refused=True, why=refusal.code)
        return False
    return True


def _regrouped(
    known: Iterable[SocialAccount], there: Mapping[str, ldap.LdapPerson], reader: ldap.Reader
) -> tuple[str, ...]:
    changed = []
    for one in known:
        entry = there.get(one.uid)
        if entry is None or not one.user.is_active or is_kept_by_directory(one.user):
            continue
        groups = reader.groups_of(entry)
        if groups is not None and groups != seen_by(one.user):
            keep_in_step(one.user, groups, None)
            changed.append(one.user.username)
    return tuple(changed)
