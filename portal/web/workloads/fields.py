"""Fields of the submit form: durations, command lines, pairs."""

from __future__ import annotations

import re
import shlex
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

MAX_SECONDS = 2_000_000_000
UNITS_S = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}

LONGEST_DURATION = 60
UNREAD_DURATION = "Write a duration such as 14 h, 20 min or 1 d 12 h."
LONGEST_PAIRS = 16 * 1024


class DurationField(forms.CharField):
    """'14 h', '20 min', '1 d 12 h' as seconds; a bare number is hours."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        if len(text) > LONGEST_DURATION:
            raise ValidationError(UNREAD_DURATION)
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)?", text.lower())
        rest = re.sub(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)?", "", text.lower()).strip()
        seconds = round(sum(float(n) * UNITS_S[unit or "h"] for n, unit in parts))
        if rest or not 0 < seconds <= MAX_SECONDS:
            raise ValidationError(UNREAD_DURATION)
        return seconds


class CommandField(forms.CharField):
    """A command line as a shell would split it."""

    def clean(self, value: Any) -> Any:
        try:
            return shlex.split(super().clean(value))
        except ValueError as error:
            raise ValidationError(
                "A quote is not closed. Close it, or write one without."
            ) from error


class PairsField(forms.CharField):
    """One NAME=value a line, as a dict. Keys that begin with ``prefix`` are Weir's own."""

    def __init__(
        self, *, key: str, example: str, value: str = r"[^\n]*", prefix: str = "", **kwargs: Any
    ) -> None:
        kwargs.setdefault("max_length", LONGEST_PAIRS)
        super().__init__(widget=forms.Textarea, **kwargs)
        self.key, self.of_value = re.compile(key), re.compile(value)
        self.prefix, self.example = prefix, example

    def clean(self, value: Any) -> Any:
        found: dict[str, str] = {}
        for number, line in enumerate(str(super().clean(value) or "").splitlines(), 1):
            if not line.strip():
                continue
            name, equals, text = line.strip().partition("=")
            if fault := self._fault(name, equals, text, name in found):
                raise ValidationError(f"Line {number}: {fault} Write one {self.example} a line.")
            found[name] = text
        return found

    def _fault(self, name: str, equals: str, text: str, again: bool) -> str:
        if not equals:
            return f"'{name[:40]}' has no '='."
        if not self.key.fullmatch(name):
            return f"'{name[:40]}' is no name that can be used here."
        if self.prefix and name.startswith(self.prefix):
            return f"names under {self.prefix} are set by the form's own fields."
        if not self.of_value.fullmatch(text):
            return f"'{text[:40]}' is no value that can be used here."
        return f"{name} is there twice." if again else ""


class NamesField(forms.CharField):
    """Names of objects of Kubernetes, commas between, each once."""

    NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
    MOST = 50

    def __init__(self, *, example: str, **kwargs: Any) -> None:
        super().__init__(max_length=LONGEST_PAIRS, **kwargs)
        self.example = example

    def clean(self, value: Any) -> Any:
        parts = (one.strip() for one in str(super().clean(value) or "").split(","))
        names = list(dict.fromkeys(filter(None, parts)))
        wrong = next((name for name in names if not self.NAME.fullmatch(name)), None)
        if wrong is not None or len(names) > self.MOST:
            what = f"'{wrong[:40]}' is no name." if wrong else f"{len(names)} are too many."
            raise ValidationError(f"{what} Write at most {self.MOST} such as {self.example}.")
        return names


def duration_text(seconds: int | None) -> str:
    """``seconds`` as ``DurationField`` reads them."""
    if not seconds:
        return ""
    unit = next(u for u in ("h", "min", "s") if seconds % UNITS_S[u] == 0)
    return f"{seconds // UNITS_S[unit]} {unit}"


def pairs_text(pairs: dict[str, str]) -> str:
    """``pairs`` as ``PairsField`` reads them."""
    return "\n".join(f"{name}={value}" for name, value in pairs.items())
