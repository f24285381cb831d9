"""Kubernetes quantities and durations as the engine's integers."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{s: Decimal(1000) ** i for i, s in enumerate("kMGTPE", start=1)},
    **{f"{s}i": Decimal(1024) ** i for i, s in enumerate("KMGTPE", start=1)},
}
MEBI = 1024 * 1024
PATTERN = re.compile(r"^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$")
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_S = 50 * 365 * 86400
"""A longer time is a slip; added to the present moment, times far longer leave the calendar."""
MOST = 2**31 - 1
"""Of whatever is asked for: more than any cluster has, and as much as a column of the database holds."""
LARGEST = Decimal(2**63 - 1)
"""Kubernetes cuts quantities off there."""


@lru_cache(maxsize=4096)
def quantity(text: str | float) -> Decimal:
    """The number a quantity such as ``500m`` or ``64Gi`` means. Raises ValueError for anything else."""
    match = PATTERN.match(str(text).strip())
    if match is None or match[2] not in SUFFIXES:
        raise ValueError(f"{text!r} is no Kubernetes quantity")
    try:
        number = Decimal(match[1]) * SUFFIXES[match[2]]
    except ArithmeticError:
        raise ValueError(f"{text!r} is no Kubernetes quantity") from None
    return max(-LARGEST, min(number, LARGEST))


def milli(text: str | float) -> int:
    """A quantity in thousandths (milli-GPU, milli-CPU), rounded down: for what is offered."""
    return int(quantity(text) * 1000)


def milli_asked(text: str | float) -> int:
    """The same rounded up: for what is asked. Raises ValueError for less than nothing."""
    amount = quantity(text)
    if amount < 0:
        raise ValueError(f"{text!r} is no amount that can be asked for")
    return math.ceil(amount * 1000)


def is_of_bytes(resource: str) -> bool:
    """Whether amounts of ``resource`` are bytes, counted here in MiB."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def mib(text: str | float) -> int:
    """A quantity of bytes in MiB, rounded up: for what is asked. Raises ValueError for less than nothing."""
    amount = quantity(text)
    if amount < 0:
        raise ValueError(f"{text!r} is no amount that can be asked for")
    return math.ceil(amount / MEBI)


def mib_below(text: str | float) -> int:
    """A quantity of bytes in MiB, rounded down: for what is offered."""
    return int(quantity(text) / MEBI)


def duration_s(text: str) -> float | None:
    """Seconds of ``20m``, ``1h30m``, ``90s`` or a bare number of seconds; None for anything else, and for
    more than LONGEST_S."""
    text = text.strip()
    parts = DURATION.findall(text)
    if parts and "".join(n + u for n, u in parts) == text:
        return seconds_within(sum(float(n) * SECONDS[u] for n, u in parts))
    try:
        return seconds_within(float(text))
    except ValueError:
        return None


def seconds_within(seconds: float) -> float | None:
    """``seconds`` where they are a length of time: none below zero, above LONGEST_S, or no number."""
    return seconds if 0 <= seconds <= LONGEST_S else None


def instant(text: str | None) -> datetime | None:
    """An RFC 3339 time as aware UTC; None for nothing or nonsense a person wrote."""
    if not text:
        return None
    try:
        when = datetime.fromisoformat(text)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (
        ValueError,
        OverflowError,
    ):  # The first and last hours of the calendar are not in every zone.
        return None


def whole(text: str | None) -> int | None:
    """The number that a person wrote in digits, at most MOST; None for anything else."""
    digits = (text or "").strip()
    if not digits.isdecimal():
        return None
    return int(digits) if len(digits) <= len(str(MOST)) and int(digits) <= MOST else MOST


def natural(value: Any) -> int | None:
    """What a field of an object says that takes a whole number from zero on; None where it says nothing.

    Raises ValueError for everything else: fields are read as the API server takes them, and an operator's
    definition may let pass what it would not.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(
            f"{str(value)[:63]!r} is no number of anything; write a whole one from 0 on"
        )
    return value


def rfc3339(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
