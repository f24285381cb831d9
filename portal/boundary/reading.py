"""Text, instants and numbers that every database, clock and cluster can hold.

A check returns nothing, a reader the value; both raise Django's ValidationError, which forms, filters
and serializers put at their field.
"""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import UTC, datetime, tzinfo
from typing import Final

from django.core.exceptions import ValidationError
from django.utils.dateparse import parse_datetime

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(3000, 1, 1, tzinfo=UTC)
"""Far enough from both ends of the calendar that no offset and no time zone leads past them."""
MOST: Final = 2**63 - 1
"""Whole numbers of the database and of Kubernetes have 64 bits."""
DIGITS: Final = len(str(MOST))

UNREADABLE: Final = re.compile("[\0\ud800-\udfff]")
"""PostgreSQL stores no NUL, and a lone half of a pair is no character of any encoding."""
CONTROL: Final = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
TURNING: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Marks that turn the direction of what follows: a name could read as another."""


def readable(text: str) -> None:
    """Refuses NUL and lone surrogates."""
    if UNREADABLE.search(text):
        raise ValidationError(
            "It holds a NUL or half a surrogate pair. Take it out.", code="unreadable"
        )


def printable(text: str) -> None:
    """Refuses control characters other than tab and line ends."""
    if CONTROL.search(text):
        raise ValidationError("It holds a control character. Take it out.", code="control")


def one_line(text: str) -> None:
    """For a name or a reason: refuses what ends a line, moves a cursor or turns the direction of writing."""
    if any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} or c in TURNING for c in text):
        raise ValidationError(
            "It holds a control character or a line end. Write it on one line.", code="control"
        )


def within_calendar(at: datetime) -> None:
    """Refuses an aware instant before EARLIEST, and from LATEST on."""
    if not EARLIEST <= at < LATEST:
        raise ValidationError(
            f"Write a time from {EARLIEST.year} to {LATEST.year - 1}.", code="out_of_calendar"
        )


def instant(text: str, zone: tzinfo = UTC) -> datetime:
    """The ISO 8601 instant of ``text``, in ``zone`` unless it says otherwise; a day is its beginning."""
    try:
        at = parse_datetime(text) or parse_datetime(f"{text}T00:00")
    except ValueError:
        at = None
    if at is None:
        raise ValidationError("It is no time.", code="no_time")
    at = at if at.tzinfo else at.replace(tzinfo=zone)
    within_calendar(at)
    return at


def whole(text: str) -> int:
    """The whole number from 0 to MOST that ``text`` says."""
    plain = text.strip()
    number = int(plain) if plain.isdecimal() and len(plain) <= DIGITS else -1
    if not 0 <= number <= MOST:
        raise ValidationError("It is no whole number.", code="no_number")
    return number


def whole_or(text: str, otherwise: int) -> int:
    """The same, and ``otherwise`` for what says none."""
    try:
        return whole(text)
    except ValidationError:
        return otherwise


def finite(number: float) -> float:
    """``number``, neither infinite nor no number at all."""
    if not math.isfinite(number):
        raise ValidationError("Write a finite number.", code="not_finite")
    return number
