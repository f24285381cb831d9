"""The filter bar of every report. What it reads stands in the address, so a link reproduces the view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from portal.accounts.models import User
from portal.boundary.reading import within_calendar
from portal.display.format import zone
from portal.reports.filters import DEFAULT_PRESET, OUTSIDE, PRESETS, ReportFilters
from portal.reports.scope import classes_of, reportable_queues
from scheduling.models import Cluster, Queue, WorkloadType

LONGEST = timedelta(days=5 * 366)


def _instant(text: str, zone: ZoneInfo, *, end_of_day: bool) -> datetime:
    """A day or a minute as the person wrote it, in their zone unless it says otherwise.

    A day stands for its beginning, or for its end where a range ends. Raises ValueError.
    """
    try:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo else at.replace(tzinfo=zone)
        is_day = len(text) == len("2026-11-19")
        # Wall-clock day first, then UTC: a day has 23 or 25 hours when the clock changes.
        at = at + timedelta(days=1) if is_day and end_of_day else at
        within_calendar(at)
        return at.astimezone(UTC)
    except (OverflowError, ValidationError) as error:
        raise ValueError(text) from error


class FilterForm(forms.Form):
    """Fields ``range`` or ``from`` and ``to``, ``class`` (several), ``queue``, ``user``, ``type``,
    ``compare``, ``evicted`` and ``for``. All are optional."""

    def __init__(
        self,
        data: Mapping[str, object],
        *,
        queues: Iterable[Queue],
        classes: Iterable[str],
        now: datetime,
        zone: str,
    ) -> None:
        super().__init__(data)
        self.now, self.zone, self.queues = now, zone, tuple(queues)
        names = [(queue.name, queue.path or queue.name) for queue in self.queues]
        types = [(t.value, t.value.capitalize()) for t in WorkloadType]
        ranges = list(PRESETS.items())
        self.fields["range"] = _choice(ranges, "There is no such range. Choose of the list.")
        self.fields["from"] = forms.CharField(required=False, max_length=32)
        self.fields["to"] = forms.CharField(required=False, max_length=32)
        self.fields["class"] = forms.MultipleChoiceField(
            choices=[(name, name) for name in classes],
            required=False,
            error_messages={
                "invalid_choice": "There is no GPU class %(value)s. Choose of the list."
            },
        )
        self.fields["queue"] = _choice(
            [("", "All queues"), *names], "There is no queue %(value)s. Choose one of the list."
        )
        self.fields["user"] = forms.CharField(required=False, max_length=150)
        self.fields["type"] = _choice(
            [("", "Any"), *types], "There is no type %(value)s. Choose one of the list."
        )
        for name in ("evicted", "for"):
            self.fields[name] = _choice(
                [("", "Any"), *names, (OUTSIDE, OUTSIDE)],
                "There is no queue %(value)s. Choose one of the list.",
            )
        self.fields["compare"] = _choice(
            [("previous", "previous period"), ("none", "nothing")],
            "Compare with the previous period or with nothing.",
        )

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("from") or cleaned.get("to"):
            cleaned["start"], cleaned["end"] = self._absolute(cleaned)
        return cleaned

    def _absolute(self, cleaned: Mapping[str, str]) -> tuple[datetime, datetime]:
        start = self._read("from", cleaned.get("from", ""), end_of_day=False)
        end = self.now
        if cleaned.get("to"):
            end = min(end, self._read("to", cleaned["to"], end_of_day=True))
        if not cleaned.get("from"):
            raise ValidationError({"from": "Say from when the range reaches."})
        if start >= self.now:
            raise ValidationError({"from": "This lies in the future. Choose an earlier day."})
        if end <= start:
            raise ValidationError({"to": "The range ends before it begins. Choose a later end."})
        if end - start > LONGEST:
            raise ValidationError({"from": "At most five years. Choose a later begin."})
        return start, end

    def _read(self, name: str, text: str, *, end_of_day: bool) -> datetime:
        try:
            return _instant(text, ZoneInfo(self.zone), end_of_day=end_of_day) if text else self.now
        except ValueError:
            message = f"{text} is no day. Write it as 2026-11-19 or 2026-11-19T09:30."
            raise ValidationError({name: message}) from None

    def filters(self) -> ReportFilters:
        """What the form asks for: of a faulty one, what of it can be read."""
        cleaned = {name: self.cleaned_data.get(name) for name in self.fields}
        fields: dict[str, Any] = {
            "gpu_classes": tuple(cleaned["class"] or ()),
            "queue": cleaned["queue"] or "",
            "user": cleaned["user"] or "",
            "type": cleaned["type"] or "",
            "evicted": cleaned["evicted"] or "",
            "asking": cleaned["for"] or "",
            "compare": cleaned["compare"] != "none",
            "zone": self.zone,
        }
        if "start" in self.cleaned_data:
            start, end = self.cleaned_data["start"], self.cleaned_data["end"]
            return ReportFilters(start=start, end=end, **fields)
        return ReportFilters.last(cleaned["range"] or DEFAULT_PRESET, self.now, **fields)


def form_of(cluster: Cluster, user: User, data: QueryDict) -> FilterForm:
    """The form over ``data`` with what ``user`` may choose. Raises Http404: they have no report here."""
    return FilterForm(
        data,
        queues=reportable_queues(cluster, user).values(),
        classes=[c.name for c in classes_of(cluster).values()],
        now=cluster.now(),
        zone=zone(user.display_time_zone or cluster.display_time_zone).key,
    )


def _choice(choices: list[tuple[str, str]], message: str) -> forms.ChoiceField:
    return forms.ChoiceField(
        choices=choices, required=False, error_messages={"invalid_choice": message}
    )
