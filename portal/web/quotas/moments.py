"""At which moment the quotas are shown: now, or another that the address names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ValidationError
from django.http import HttpRequest

from portal.boundary.reading import instant
from portal.display.format import zone
from portal.web.frame.context import Shell

FIELD = "%Y-%m-%dT%H:%M"
"""As a browser's field for a time takes it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """``at`` is None for now, and where what was typed is no time: then ``fault`` says so. ``text`` goes
    back into the field."""

    text: str = ""
    at: datetime | None = None
    fault: str = ""


NOW = Moment()


def moment_of(request: HttpRequest) -> Moment:
    """What ``at`` in the address says, in the person's time zone unless it names one."""
    text = request.GET.get("at", "").strip()
    if not text:
        return NOW
    local = zone(Shell(request).zone)
    try:
        at = instant(text, local)
    except ValidationError as error:
        said = " ".join(error.messages)
        return Moment(text, fault=f"“{text[:30]}”: {said} Write one such as 2026-12-31 18:00.")
    return Moment(at.astimezone(local).strftime(FIELD), at)
