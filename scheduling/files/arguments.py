"""Command lines: numbers and times within bounds, and what is refused in one line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import NoReturn

from .faults import plain

FIRST_YEAR, LAST_YEAR = 1971, 2199
MOST_NODES = 100_000
MOST_SPEED = 1_000_000
MOST_S = 10_000 * 86400
LAST_PORT = 65535
REFUSED = 2
"""The exit code for what somebody typed or gave."""


class OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(REFUSED, refusal(self.prog, message))


def refusal(program: str, message: str) -> str:
    """The line by which ``program`` refuses what was typed; ``message`` is argparse's."""
    told = plain(message.removeprefix("argument "))
    return f"{program}: {told}; --help says what may stand there\n"


def whole(least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers from ``least`` to ``most``."""

    def read(text: str) -> int:
        digits = text.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))):
            raise _refused(text, f"a whole number from {least:,} to {most:,}")
        if not least <= int(digits) <= most:
            raise _refused(text, f"a whole number from {least:,} to {most:,}")
        return int(digits)

    return read


def factor(text: str) -> float:
    """How many times faster than the wall's time."""
    value = _number(text)
    if not 0 < value <= MOST_SPEED:
        raise _refused(text, f"a number above 0 and at most {MOST_SPEED:,}")
    return value


def seconds(text: str) -> float:
    """A length of time."""
    value = _number(text)
    if not 0 <= value <= MOST_SPEED:
        raise _refused(text, f"a number of seconds from 0 to {MOST_SPEED:,}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def instant(text: str) -> datetime:
    """An ISO time; one without an offset is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _refused(text, "a time such as 2017-10-01 or '2017-11-30 23:59:00'") from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise _refused(text, f"a time in the years {FIRST_YEAR} to {LAST_YEAR}")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def day(text: str) -> date:
    """A day as 2017-11-06."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise _refused(text, "a day such as 2017-11-06") from None
    if not FIRST_YEAR <= found.year <= LAST_YEAR:
        raise _refused(text, f"a day in the years {FIRST_YEAR} to {LAST_YEAR}")
    return found


def _refused(text: str, expected: str) -> argparse.ArgumentTypeError:
    found = repr(text if len(text) <= 60 else text[:60] + "…")
    return argparse.ArgumentTypeError(f"found {found}, expected {expected}")
