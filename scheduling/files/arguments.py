"""Command lines: numbers and times within bounds, and what is refused in one line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime

from .faults import plain

FIRST_YEAR, LAST_YEAR = 1971, 2199
LAST_PORT = 65535
REFUSED = 2
"""The exit code for what somebody typed or gave."""


def refusal(program: str, message: str) -> str:
    """The line by which ``program`` refuses what was typed; ``message`` is argparse's."""
    reason = plain(message.removeprefix("argument "))
    return f"{program}: {reason}; --help says what may stand there\n"


def whole(least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers from ``least`` to ``most``."""

    def read(text: str) -> int:
        digits = text.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))):
            raise refused(text, f"a whole number from {least:,} to {most:,}")
        if not least <= int(digits) <= most:
            raise refused(text, f"a whole number from {least:,} to {most:,}")
        return int(digits)

    return read


def instant(text: str) -> datetime:
    """An ISO time; one without an offset is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise refused(text, "a time such as 2017-10-01 or '2017-11-30 23:59:00'") from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise refused(text, f"a time in the years {FIRST_YEAR} to {LAST_YEAR}")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def refused(text: str, expected: str) -> argparse.ArgumentTypeError:
    """What a reader of an argument raises."""
    found = repr(text if len(text) <= 60 else text[:60] + "…")
    return argparse.ArgumentTypeError(f"found {found}, expected {expected}")
