"""Fields of forms whose unit is a person's: what they hold, once read, is the unit of services.

A page shows them and reads what is typed; the API's body reads the same field in the unit of services' names
(``portal.api.bodies``), but for GPUs, which are numbers of GPUs at every door.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.core.exceptions import ValidationError

from portal.boundary.reading import instant
from scheduling.models import MILLI


class ScaledField(forms.DecimalField):
    """A number in a unit of which one is ``scale`` of what is kept; left empty it is None."""

    scale = 1

    def clean(self, value: Any) -> Any:
        typed = super().clean(value)
        return None if typed is None else int(typed * self.scale)

    def prepare_value(self, value: Any) -> Any:
        return f"{value / self.scale:g}" if isinstance(value, int) else value


class GpusField(ScaledField):
    """Typed in GPUs, kept in milli-GPU."""

    scale = MILLI


class HoursField(ScaledField):
    """Typed in hours, kept in seconds."""

    scale = 3600


class MinutesField(ScaledField):
    """Typed in minutes, kept in seconds."""

    scale = 60


class NodeLabelField(forms.CharField):
    """Typed as 'key=value', kept as {key: value}; nothing is every node."""

    def clean(self, value: Any) -> Any:
        key, _, said = super().clean(value).partition("=")
        return {key: said} if key else {}


class NamesField(forms.CharField):
    """Typed with commas between, kept as a tuple of names, each once."""

    most, longest = 20, 150

    def clean(self, value: Any) -> Any:
        names = (name.strip() for name in super().clean(value).split(","))
        return tuple(dict.fromkeys(filter(None, names)))

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) or value is None else ", ".join(value)


class LastDayField(forms.DateField):
    """Typed as the last day, kept as the moment at which it ends; nothing is no end."""

    widget = forms.DateInput(attrs={"type": "date"})
    zone = ZoneInfo("UTC")

    def clean(self, value: Any) -> Any:
        day = super().clean(value)
        try:
            return day and datetime.combine(day + timedelta(days=1), time(), self.zone)
        except OverflowError as error:
            raise forms.ValidationError(self.error_messages["invalid"], "invalid") from error


class MomentField(forms.CharField):
    """A local time; nothing where it may be left empty."""

    def __init__(self, *, required: bool = False, **kwargs: Any) -> None:
        widget = forms.TextInput(attrs={"type": "datetime-local"})
        super().__init__(required=required, max_length=40, widget=widget, **kwargs)
        self.zone: ZoneInfo = ZoneInfo("UTC")

    def clean(self, value: Any) -> Any:
        text = super().clean(value).strip()
        if not text:
            return None
        try:
            return instant(text, self.zone)
        except ValidationError as error:
            raise forms.ValidationError(
                "Write a time as 2026-12-31T18:00, or leave it empty."
            ) from error
