"""The one-time link of the first admin: made by whoever has a terminal on the machine, used once."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from portal.accounts.models import User
from portal.setup.models import Invitation
from portal.teams.memberships import administrators
from portal.teams.people import USER_NAME
from scheduling.services import events
from scheduling.services.errors import ServiceError

VALID = timedelta(hours=24)


def needs_admin() -> bool:
    return not administrators().exists()


def invite() -> str:
    """A fresh key; those made before are void."""
    key = secrets.token_urlsafe(32)
    Invitation.objects.all().delete()
    Invitation.objects.create(digest=_digest(key), ends_at=timezone.now() + VALID)
    return key


def is_valid(key: str) -> bool:
    now = timezone.now()
    invitations = Invitation.objects.filter(digest=_digest(key), used_at=None, ends_at__gt=now)
    return invitations.exists() and needs_admin()


@transaction.atomic
def accept(key: str, *, username: str, password: str) -> User:
    """The first admin, a superuser: there is no team yet that could give them a persona.

    Raises ServiceError at a field, or ``gone`` for a link that was used or has ended.
    """
    user = User(username=username.strip(), is_superuser=True)
    if not USER_NAME.fullmatch(user.username):
        raise ServiceError(
            "bad_name",
            "That is no user name.",
            "Use lower-case letters, digits, '.', '-', '_' and '@', at most 63 characters.",
            field="username",
        )
    if User.objects.filter(username__iexact=user.username).exists():
        raise ServiceError("name_taken", "That name is taken.", "Choose another.", field="username")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise ServiceError("bad_password", " ".join(error.messages), field="password") from error
    # Claimed by what is not used yet: of two who open it at once, one is told that it is gone.
    claimed = is_valid(key) and Invitation.objects.filter(digest=_digest(key), used_at=None).update(
        used_at=timezone.now()
    )
    if not claimed:
        raise ServiceError(
            "gone", "This link was used or has ended.", "Restart Weir: it prints a new one."
        )
    user.set_password(password)
    user.save()
    events.announce("sign_in.invited", actor=user, subject=user.username)
    return user


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
