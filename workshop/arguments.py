"""Arguments that only commands of the workshop take: speeds, lengths of time, days."""

from __future__ import annotations

import argparse
import math
from datetime import date
from typing import NoReturn

from scheduling.files.arguments import FIRST_YEAR, LAST_YEAR, REFUSED, refusal, refused

MOST_NODES = 100_000
MOST_SPEED = 1_000_000
MOST_S = 10_000 * 86400


class OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(REFUSED, refusal(self.prog, message))


def factor(text: str) -> float:
    """How many times faster than the wall's time."""
    value = _number(text)
    if not 0 < value <= MOST_SPEED:
        raise refused(text, f"a number above 0 and at most {MOST_SPEED:,}")
    return value


def seconds(text: str) -> float:
    """A length of time."""
    value = _number(text)
    if not 0 <= value <= MOST_SPEED:
        raise refused(text, f"a number of seconds from 0 to {MOST_SPEED:,}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def day(text: str) -> date:
    """A day as 2017-11-06."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise refused(text, "a day such as 2017-11-06") from None
    if not FIRST_YEAR <= found.year <= LAST_YEAR:
        raise refused(text, f"a day in the years {FIRST_YEAR} to {LAST_YEAR}")
    return found
