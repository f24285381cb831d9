"""Moments as people type them: local time of the page."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.core.exceptions import ValidationError

from portal.boundary.reading import instant
from portal.display.format import zone

LOCAL = "%Y-%m-%dT%H:%M"


class MomentField(forms.CharField):
    """A local time, or nothing."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.TextInput(attrs={"type": "datetime-local"})
        super().__init__(required=False, max_length=40, widget=widget, **kwargs)
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


def local(at: datetime | None, zone_name: str) -> str:
    return at.astimezone(zone(zone_name)).strftime(LOCAL) if at else ""
