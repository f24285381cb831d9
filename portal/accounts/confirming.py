"""A provider (OpenID Connect, SAML) says who somebody is and in which groups only when it signs them in.

What it said longer ago than ``WEIR_SIGN_IN_AGE_S`` counts no more: sessions end and tokens wait until it says
so again.
"""

from __future__ import annotations

from datetime import timedelta

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from portal.accounts.audit import record
from portal.accounts.ldap import PROVIDER_ID as DIRECTORY_ID
from portal.accounts.models import Session, User


def end_unconfirmed() -> list[str]:
    """End the sessions of people of whom the provider said nothing for too long; whose those were."""
    if not settings.WEIR_SIGN_IN_AGE_S:
        return []
    people = User.objects.filter(pk__in=_unconfirmed().values("user"), sessions__isnull=False)
    ended = list(people.distinct().order_by("pk"))
    for user in ended:
        Session.objects.filter(user=user).delete()
        record("session.unconfirmed", None, user=user)
    return [user.username for user in ended]


def is_unconfirmed(user: User) -> bool:
    """Whether their tokens wait. No query unless an age is set."""
    return bool(settings.WEIR_SIGN_IN_AGE_S) and _unconfirmed().filter(user=user).exists()


def _unconfirmed() -> QuerySet[SocialAccount]:
    """Of people whom a provider signs in; superusers are for the day on which it is wrong."""
    since = timezone.now() - timedelta(seconds=settings.WEIR_SIGN_IN_AGE_S)
    rows = SocialAccount.objects.exclude(provider=DIRECTORY_ID).filter(user__is_superuser=False)
    # Each sign-in by the provider writes the row.
    return rows.filter(last_login__lt=since)
