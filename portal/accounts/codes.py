"""Codes of a second factor: each is good once, whatever two processes do at the same moment."""

from __future__ import annotations

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from allauth.mfa.utils import decrypt
from django.db import transaction

from portal.accounts.models import User

LAST = "last_step"
"""Of an app, in its row: the newest time step of which a code was taken."""


@transaction.atomic
def spend(user: User, code: str) -> Authenticator | None:
    """The app or the set of recovery codes that ``code`` is of; None where it is of none, or used up.

    The rows are locked, so that of two who come with one code the second finds it used. It needs no
    cache: a portal whose Redis is away lets people in, and no code twice.
    """
    of_codes = Authenticator.objects.exclude(type=Authenticator.Type.WEBAUTHN)
    for factor in of_codes.select_for_update().filter(user=user).order_by("-type"):
        if factor.type == Authenticator.Type.TOTP:
            good = _spend_step(factor, code)
        else:
            good = factor.wrap().validate_code(code)
        if good:
            factor.user = user
            return factor
    return None


def _spend_step(app: Authenticator, code: str) -> bool:
    secret = decrypt(app.data["secret"])
    for step in yield_hotp_counters_from_time():
        fits = compare_user_code(actual=code, expected=format_hotp_value(hotp_value(secret, step)))
        if fits and step > app.data.get(LAST, -1):
            app.data[LAST] = step
            app.save(update_fields=["data"])
            return True
    return False
