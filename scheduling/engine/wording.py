"""Amounts, instants and durations as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from scheduling.engine.model import MILLI


def amount(milli: float) -> str:
    """GPUs as people read them: at most one decimal, shares of one GPU at most three."""
    gpus = milli / MILLI
    digits = 3 if 0 < abs(gpus) < 1 else 1
    return f"{gpus:.{digits}f}".rstrip("0").rstrip(".") if gpus % 1 else f"{gpus:.0f}"


def gib(mib: float) -> str:
    return f"{mib / 1024:.1f}".removesuffix(".0") + " GiB"


def clock(instant: datetime | None) -> str:
    return "unknown" if instant is None else f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def span(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{rest} s"
