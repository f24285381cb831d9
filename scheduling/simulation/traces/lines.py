"""Reading a text file line by line, packed or not, and collecting what is wrong with it."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

from .model import MAX_FAULTS, TraceError, TraceFault

LONGEST = 65_536
SMALL, LARGEST = 16 << 20, 2 << 30
"""Characters: so many any file may hold, and no file more than so many."""
LEAST = 16
"""What an empty line costs to read is counted as so many characters."""
MOST_RATIO = 100
"""What is recorded packs to a fifth or a twentieth of its size."""
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]"
)
"""What a terminal would obey, or hide."""
MOST_GPUS = 100_000
MOST_NODES = 100_000
LONGEST_S = 50 * 365 * 86400
FIRST_S, LAST_S = 31_536_000, 7_258_118_400
"""POSIX seconds of the years 1971 and 2200."""


class Faults:
    """Collects the faults of one file; gives up at MAX_FAULTS."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)
        self.found: list[TraceFault] = []

    def add(self, line: int, found: str, expected: str) -> None:
        """Raises TraceError when there are too many to go on."""
        self.found.append(TraceFault(self.file, line, found, expected))
        if len(self.found) >= MAX_FAULTS:
            self.raise_if_any()

    def fail(self, line: int, found: str, expected: str) -> NoReturn:
        """A fault after which reading on makes no sense."""
        raise TraceError([*self.found, TraceFault(self.file, line, found, expected)])

    def raise_if_any(self) -> None:
        if self.found:
            raise TraceError(self.found)


def read_lines(file: Path, faults: Faults) -> Iterator[tuple[int, str]]:
    """(line number from 1, text without its end) of a file, ``.gz`` unpacked.

    Blank lines are left out. Bytes that are not UTF-8 come as U+FFFD, so the field's check names them.
    Raises TraceError where the file cannot be opened, its packing is damaged or hides more than MOST_RATIO
    times its size, or a line is no text of bounded length.
    """
    number = 0
    opener = gzip.open if file.suffix == ".gz" else open
    try:
        left = max(SMALL, min(LARGEST, MOST_RATIO * file.stat().st_size))
        with opener(file, "rt", encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(iter(partial(lines.readline, LONGEST + 1), ""), 1):
                left -= max(len(line), LEAST)
                if len(line) > LONGEST:
                    faults.fail(number, "a longer line", f"at most {LONGEST:,} characters")
                if left < 0:
                    faults.fail(number, "more", f"less than {MOST_RATIO} times the packed size")
                if control := CONTROL.search(line):
                    faults.fail(number, f"the character {control[0]!r}", "text in every field")
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        faults.fail(number + 1, f"damaged data ({error})", "a whole gzip file")
    except OSError as error:
        faults.fail(0, error.strerror or str(error), "a readable file")


def whole(text: str, least: int, most: int) -> int | None:
    """The whole number that ``text`` is; None for anything else and for one out of bounds."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= len(str(most))):
        return None
    return int(digits) if least <= int(digits) <= most else None
