"""What a person types about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, UsernameField
from django.http import HttpRequest
from django.utils import timezone

from portal.accounts import tries
from portal.accounts.models import LONGEST_TOKEN_DAYS, Scope
from portal.boundary.reading import one_line


def address_of(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


def lock_of(form: forms.Form) -> tries.LockedError | None:
    """The refusal to check a password any more, if that is among the form's faults."""
    faults = (fault for found in form.errors.as_data().values() for fault in found)
    return next((fault for fault in faults if isinstance(fault, tries.LockedError)), None)


class SignInForm(AuthenticationForm):
    """User name and password; one sentence for both when they do not match."""

    username = UsernameField(max_length=150)
    password = forms.CharField(strip=False, max_length=4096)

    error_messages = {
        "invalid_login": "User name and password do not match. Both are case-sensitive.",
        "inactive": "User name and password do not match. Both are case-sensitive.",
    }

    def clean(self) -> dict[str, Any]:
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if name is None or not password or self.request is None:
            return super().clean()
        with tries.one_try(name, address_of(self.request)):
            return super().clean()


class PasswordForm(PasswordChangeForm):
    """A new password, from somebody who knows the old one; that may be guessed no more than at sign-in."""

    error_messages = {
        **PasswordChangeForm.error_messages,
        "password_incorrect": "That is not your password.",
        "password_mismatch": "The two new passwords differ.",
    }

    def __init__(self, *args: Any, address: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.address = address
        self.fields["old_password"].label = "Password until now"
        self.fields["new_password2"].label = "New password again"

    def clean_old_password(self) -> str:
        with tries.one_try(self.user.get_username(), self.address):
            return super().clean_old_password()


class TokenForm(forms.Form):
    """A new API token: what it is for, what it may do, and how long it lives."""

    name = forms.CharField(
        max_length=63,
        validators=[one_line],
        error_messages={
            "required": "A token needs a name. Say what will use it.",
            "max_length": "Use at most 63 characters.",
        },
    )
    scopes = forms.TypedMultipleChoiceField(
        coerce=Scope,
        required=False,
        choices=Scope.choices,
        help_text="The uses that it allows; reading alone unless told.",
        error_messages={"invalid_choice": "Choose among what is listed."},
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=LONGEST_TOKEN_DAYS,
        required=False,
        initial=90,
        widget=forms.Select(choices=[("30", "30 days"), ("90", "90 days"), ("365", "one year")]),
        help_text="How long it lives; null: without end, where that is allowed.",
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            f"A token lives for 1 to {LONGEST_TOKEN_DAYS} days.",
        ),
    )

    def __init__(self, *args: Any, directory: bool = False, **kwargs: Any) -> None:
        """Every token may read, so that is not asked. ``directory``: whether it may be one that keeps people
        and groups in step."""
        super().__init__(*args, **kwargs)
        without = {Scope.READ} if directory else {Scope.READ, Scope.DIRECTORY}
        fields: dict[str, Any] = self.fields
        fields["scopes"].choices = [one for one in Scope.choices if one[0] not in without]
        days = fields["days"]
        days.required = not settings.WEIR_ENDLESS_TOKENS
        days.error_messages["required"] = "Every token has to end. Choose a time."
        if settings.WEIR_ENDLESS_TOKENS:
            days.widget.choices = [*days.widget.choices, ("", "no end")]


def token_terms(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Of a token, as ``doors.issue_token`` takes them: endless where ``days`` is sent as None, with the usual
    end where it is not sent."""
    days = sent.get("days")
    return {
        "name": sent["name"],
        "scopes": [Scope(scope) for scope in sent.get("scopes", ())],
        "expires_at": None if days is None else timezone.now() + timedelta(days=days),
        "endless": days is None and "days" in sent,
    }


class TimeZoneForm(forms.Form):
    """The zone in which this person reads times; empty follows the cluster."""

    display_time_zone = forms.CharField(max_length=60, required=False)

    def clean_display_time_zone(self) -> str:
        name: str = self.cleaned_data["display_time_zone"]
        if name and name not in available_timezones():
            raise forms.ValidationError("Unknown time zone. Write one such as Europe/Berlin.")
        return name
