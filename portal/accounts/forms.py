"""What a person types about themselves."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.utils import timezone


class SignInForm(AuthenticationForm):
    """User name and password; one sentence for both when they do not match."""

    error_messages = {
        "invalid_login": "User name and password do not match. Both are case-sensitive.",
        "inactive": "User name and password do not match. Both are case-sensitive.",
    }


class TokenForm(forms.Form):
    """A new API token: what it is for, and how long it lives."""

    name = forms.CharField(
        max_length=63,
        error_messages={
            "required": "A token needs a name. Say what will use it.",
            "max_length": "Use at most 63 characters.",
        },
    )
    days = forms.TypedChoiceField(
        coerce=int,
        empty_value=None,
        required=False,
        initial="90",
        choices=[("30", "30 days"), ("90", "90 days"), ("365", "one year"), ("", "no end")],
        error_messages={"invalid_choice": "Choose one of the listed times."},
    )

    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None


class TimeZoneForm(forms.Form):
    """The zone in which this person reads times; empty follows the cluster."""

    display_time_zone = forms.CharField(max_length=60, required=False)

    def clean_display_time_zone(self) -> str:
        name: str = self.cleaned_data["display_time_zone"]
        if name and name not in available_timezones():
            raise forms.ValidationError("Unknown time zone. Write one such as Europe/Berlin.")
        return name
