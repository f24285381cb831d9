"""Codes and passwords that confirm who somebody is; each can be guessed no more often than at sign-in."""

from __future__ import annotations

from allauth.account.forms import ReauthenticateForm
from allauth.core import context
from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.base.forms import ReauthenticateForm as ReauthenticateByCodeForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from allauth.mfa.utils import decrypt
from django import forms
from django.db import transaction

from portal.accounts import tries
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


CODE_OF = "second-factor:"
"""Before a name, it counts tries at codes apart from those at passwords: who knows the password would
otherwise begin a new count by signing in again. No user name holds a colon."""
LONGEST_CODE = 32


def _address() -> str:
    return str(context.request.META.get("REMOTE_ADDR", ""))


def _bounded(form: forms.Form) -> None:
    code = form.fields["code"]
    assert isinstance(code, forms.CharField)  # noqa: S101 - allauth's forms have it
    code.max_length = LONGEST_CODE
    code.error_messages["required"] = "Type the code."
    code.widget.attrs["maxlength"] = LONGEST_CODE


class SpendingForm:
    """What both forms for codes do with one: a try is counted, and a right code is used up."""

    user: User

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        _bounded(self)  # type: ignore[arg-type] # a form by its other parent

    def clean_code(self) -> str:
        code: str = self.cleaned_data["code"]  # type: ignore[attr-defined] # of a form
        with tries.one_try(CODE_OF + self.user.get_username(), _address()):
            self.authenticator = spend(self.user, code)
            if self.authenticator is None:
                self._tell_failed()
                raise get_adapter().validation_error("incorrect_code")
        return code

    def _tell_failed(self) -> None:
        first = Authenticator.objects.filter(user=self.user).order_by("-type").first()
        if first is not None:
            self._emit_authentication_failed(first)  # type: ignore[attr-defined] # of allauth's forms


class CodeForm(SpendingForm, AuthenticateForm):
    """The second step of sign-in: a code of the app, or a recovery code."""


class ConfirmCodeForm(SpendingForm, ReauthenticateByCodeForm):
    """A code once more, before something about factors is changed."""


class ConfirmPasswordForm(ReauthenticateForm):
    """The password once more."""

    def clean_password(self) -> str:
        with tries.one_try(self.user.get_username(), _address()):
            return str(super().clean_password())


class ActivateAppForm(ActivateTOTPForm):
    """The first code of a new app, which shows that it took the key."""

    def __init__(self, *args: object, user: User, **kwargs: object) -> None:
        super().__init__(*args, user=user, **kwargs)
        _bounded(self)

    def clean_code(self) -> str:
        with tries.one_try(CODE_OF + self.user.get_username(), _address()):
            return str(super().clean_code())
