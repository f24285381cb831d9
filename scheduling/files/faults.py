"""What is said of a broken file, and the one door by which texts of others reach a terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One place of a file that is not as it should be.

    ``line`` counts from 1; 0 is the file as a whole. ``path`` is the field, empty where there is none.
    """

    file: str
    line: int
    path: str
    found: str
    expected: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        field = f"{self.path}: " if self.path else ""
        return plain(f"{where}{field}found {self.found}, expected {self.expected}; {self.remedy}")


class BrokenFileError(ValueError):
    """A file of which nothing is used. One line of the message for each fault."""

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        super().__init__("\n".join(map(str, faults)))


def plain(text: str) -> str:
    """``text`` on one line, with whatever a terminal would obey or hide written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
