"""Codes and passwords that confirm who somebody is; each can be guessed no more often than at sign-in."""

from __future__ import annotations

from allauth.account.forms import ReauthenticateForm
from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.base.forms import ReauthenticateForm as ReauthenticateByCodeForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from django import forms

from portal.accounts import tries
from portal.accounts.codes import spend
from portal.accounts.models import User

CODE_OF = "second-factor:"
"""Before a name, it counts tries at codes apart from those at passwords: whoever knows the password would
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
