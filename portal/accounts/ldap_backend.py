"""Signs people in with their password of the organisation's directory (LDAP).

They are known by the directory's own key of them. At the first sign-in the account is made; one that is there
already is theirs only where it has no password and no other connection, as with the provider. A password of
an account that Weir keeps is never sent to the directory.
"""

from __future__ import annotations

from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import ValidationError
from django.db import transaction
from django.dispatch import Signal
from django.http import HttpRequest

from portal.accounts import ldap
from portal.accounts.audit import record
from portal.accounts.models import User
from portal.accounts.provider import cut, fault_of, is_free

answered = Signal()
"""The directory signed ``user`` in and says which ``groups`` they are in; None where it says none."""


class DirectoryBackend(ModelBackend):
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        """None where it is nobody's. Raises ValidationError, whose sentence the form shows."""
        directory: ldap.Directory | None = settings.WEIR_LDAP
        if directory is None or not username or not password or not _is_for_it(username):
            return None
        try:
            found = ldap.sign_in(directory, username, password)
        except ldap.AwayError as away:
            record("directory.away", request, user=None, refused=True, why=away.why)
            raise
        if found is None:
            return None
        entry, groups = found
        user = _account_of(entry, directory)
        if user.is_active:
            answered.send(DirectoryBackend, user=user, groups=groups, request=request)
            return user
        return None


def is_connected(user: User) -> bool:
    """Whether the directory checks this person's password."""
    if settings.WEIR_LDAP is None:
        return False
    return SocialAccount.objects.filter(user=user, provider=ldap.PROVIDER_ID).exists()


def _is_for_it(name: str) -> bool:
    known = User.objects.filter(username__iexact=name).first()
    return known is None or (known.is_active and (is_connected(known) or is_free(known)))


@transaction.atomic
def _account_of(entry: ldap.LdapPerson, directory: ldap.Directory) -> User:
    accounts = SocialAccount.objects.filter(provider=ldap.PROVIDER_ID, uid=entry.key)
    if account := accounts.select_related("user").first():
        return account.user
    if fault := fault_of(entry.name, directory.name):
        raise ValidationError(fault)
    user = User.objects.filter(username__iexact=entry.name).first() or _made(entry)
    if not is_free(user):
        raise ValidationError(
            f"There is an account {user} here already. Sign in with its password."
        )
    SocialAccount.objects.create(user=user, provider=ldap.PROVIDER_ID, uid=entry.key)
    return user


def _made(entry: ldap.LdapPerson) -> User:
    user = User(
        username=entry.name,
        first_name=cut(entry.first_name, 150),
        last_name=cut(entry.last_name, 150),
        email=cut(entry.email, 254),
    )
    user.set_unusable_password()
    user.save()
    return user
