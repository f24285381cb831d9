"""Amounts, instants and durations as people read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from scheduling.engine.model import MILLI


def amount(milli: float) -> str:
    """GPUs as people read them: one decimal, up to three for shares of one GPU and for what one decimal
    would make a whole number.
    """
    gpus = milli / MILLI
    return _short(gpus, 3 if abs(gpus) < 1 else _digits(gpus))


def share(milli: float) -> str:
    """GPUs of a fair share, which come of a division: one decimal, up to three for what that would make a
    whole number.
    """
    gpus = milli / MILLI
    return _short(gpus, _digits(gpus))


def above(usage: float, fair: float) -> str:
    """What is ``held`` above a ``fair`` share, as it follows from the two as they read."""
    read = MILLI * (float(amount(usage)) - float(share(fair)))
    return share(read if read > 0 else usage - fair)


def _digits(gpus: float) -> int:
    return 3 if f"{gpus:.1f}".endswith(".0") else 1


def _short(gpus: float, digits: int) -> str:
    return f"{gpus:.{digits}f}".rstrip("0").rstrip(".") if gpus % 1 else f"{gpus:.0f}"


def are(milli: float) -> str:
    """The verb of ``amount``."""
    return "is" if amount(milli) == "1" else "are"


def gpus_in_words(milli: float) -> str:
    return f"{amount(milli)} GPU{'s' * (amount(milli) != '1')}"


def plural(count: float, word: str) -> str:
    """``count`` of ``word``, which takes an s."""
    return f"{count:.0f} {word}{'s' * (round(count) != 1)}"


def gib(mib: float) -> str:
    return f"{mib / 1024:.1f}".removesuffix(".0") + " GiB"


def clock(instant: datetime | None) -> str:
    return "unknown" if instant is None else f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


CLOCK = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d) UTC\b")
"""As ``clock`` writes an instant, for pages that show it in the reader's own time."""


def loss(gpu_s: float) -> str:
    return f"Work lost: {gpu_s / 3600:.1f} GPU-hours."


LOSS = re.compile(r" ?Work lost: [\d.]+ GPU-hours\.")
"""As ``loss`` stands in a sentence, for pages where the figure stands beside it."""


def span(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        days, hours = divmod(hours, 24)
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
    return f"{minutes} min" if minutes else f"{rest} s"


def first_up(text: str) -> str:
    """``text`` as a sentence begins."""
    return text[:1].upper() + text[1:]
