"""What a browser says of a passkey. Anybody can send anything there, so whatever it leads to is a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from django import forms

from portal.accounts.models import User
from portal.boundary.reading import one_line

LONGEST_NAME = 63


@contextmanager
def _strangers_word() -> Iterator[None]:
    try:
        yield
    except Exception as fault:
        sentence = "That passkey is not known here, or it answered another question. Try again."
        raise forms.ValidationError(sentence, code="unknown_passkey") from fault


class ReadingForm:
    def clean_credential(self) -> Authenticator:
        with _strangers_word():
            return super().clean_credential()  # type: ignore[misc] # of allauth's forms


class PasskeyForm(ReadingForm, AuthenticateWebAuthnForm):
    """The second step of sign-in."""


class PasskeySignInForm(ReadingForm, LoginWebAuthnForm):
    """Sign-in by the passkey alone."""


class ConfirmPasskeyForm(ReadingForm, ReauthenticateWebAuthnForm):
    """Once more, before something about factors is changed."""


class AddPasskeyForm(AddWebAuthnForm):
    """Every key is a passkey: it is found without a name, and its owner unlocks it."""

    def __init__(self, *args: object, user: User, **kwargs: object) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.fields["name"].validators.append(one_line)
        for code in ("required", "invalid"):
            self.fields["credential"].error_messages[code] = "The browser sent none. Try again."

    def clean_name(self) -> str:
        name = str(super().clean_name())
        if len(name) > LONGEST_NAME:
            raise forms.ValidationError(f"Use at most {LONGEST_NAME} characters.")
        return name

    def clean(self) -> dict[str, Any]:
        with _strangers_word():
            return dict(super().clean())
