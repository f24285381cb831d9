"""Reading a text file line by line, packed or not, and collecting what is wrong with it."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from .model import MAX_FAULTS, Fault, TraceError


class Faults:
    """Collects the faults of one file; gives up at MAX_FAULTS."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)
        self.found: list[Fault] = []

    def add(self, line: int, found: str, expected: str) -> None:
        """Raises TraceError when there are too many to go on."""
        self.found.append(Fault(self.file, line, found, expected))
        if len(self.found) >= MAX_FAULTS:
            self.raise_if_any()

    def fail(self, line: int, found: str, expected: str) -> NoReturn:
        """A fault after which reading on makes no sense."""
        raise TraceError([*self.found, Fault(self.file, line, found, expected)])

    def raise_if_any(self) -> None:
        if self.found:
            raise TraceError(self.found)


def read_lines(file: Path, faults: Faults) -> Iterator[tuple[int, str]]:
    """(line number from 1, text without its end) of a file, ``.gz`` unpacked.

    Blank lines are left out. Bytes that are not UTF-8 come as U+FFFD, so the field's check names them.
    Raises TraceError where the file cannot be opened or its packing is damaged.
    """
    number = 0
    opener = gzip.open if file.suffix == ".gz" else open
    try:
        with opener(file, "rt", encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        faults.fail(number + 1, f"damaged data ({error})", "a whole gzip file")
    except OSError as error:
        faults.fail(0, error.strerror or str(error), "a readable file")
