"""Files that people give: read within bounds, and what is wrong with them said by file and line.

Whatever stands in a file costs time and memory in proportion to its size, and no more.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from yaml import events as e

from .bounds import parse_events, read
from .faults import BrokenFileError, Fault, plain


def lines_of(text: str, paths: Iterable[str]) -> dict[str, int]:
    """Line (from 1) of each of ``paths`` (``workloads[1].gpus``) in a text that ``read`` took.

    A field that is not there has the line of the nearest one around it that is.
    """
    walk = _Walk(text, paths)
    walk.run()
    return walk.lines


class _Walk:
    def __init__(self, text: str, paths: Iterable[str]) -> None:
        self.lines = dict.fromkeys(paths, 1)
        self._events: Iterator[Any] = parse_events(text, "")

    def run(self) -> None:
        next(self._events)
        if not isinstance(next(self._events), e.StreamEndEvent):
            self._value(next(self._events), "", list(self.lines))

    def _value(self, event: Any, path: str, wanted: list[str]) -> None:
        """``wanted``: the paths at or below ``path``."""
        if isinstance(event, e.SequenceStartEvent):
            self._sequence(path, wanted)
        elif isinstance(event, e.MappingStartEvent):
            self._mapping(path, wanted)

    def _sequence(self, path: str, wanted: list[str]) -> None:
        number = 0
        while not isinstance(event := next(self._events), e.SequenceEndEvent):
            self._enter(f"{path}[{number}]", event, event, wanted)
            number += 1

    def _mapping(self, path: str, wanted: list[str]) -> None:
        while not isinstance(key := next(self._events), e.MappingEndEvent):
            name = getattr(key, "value", "")
            self._enter(f"{path}.{name}" if path else name, key, next(self._events), wanted)

    def _enter(self, path: str, mark: Any, event: Any, wanted: list[str]) -> None:
        inside = [p for p in wanted if _within(p, path)]
        for each in inside:
            self.lines[each] = mark.start_mark.line + 1
        self._value(event, path, inside)


def _within(path: str, around: str) -> bool:
    return path.startswith(around) and (len(path) == len(around) or path[len(around)] in ".[")


MOST_BYTES = 64 * 1024 * 1024
"""A snapshot of 120,000 workloads has about 30 MiB."""
STANDARD_INPUT = "-"
NO_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What neither YAML nor JSON lets stand in a file."""


def read_text(name: str) -> str:
    """The text of the UTF-8 file ``name``, or of standard input for ``-``.

    Raises BrokenFileError where it cannot be read, is larger than MOST_BYTES, or is no text.
    """
    data = _read(name)
    if len(data) > MOST_BYTES:
        size = f"at most {MOST_BYTES >> 20} MiB"
        raise BrokenFileError(Fault(name, 0, "", "more than that", size, "give a smaller file"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"a byte {data[error.start]:#04x} that is no text"
        raise BrokenFileError(
            Fault(name, line, "", found, "UTF-8", "save the file as UTF-8")
        ) from None
    odd = NO_TEXT.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise BrokenFileError(
            Fault(name, line, "", f"the character {odd[0]!r}", "printable text", "take it out")
        )
    return text


def _read(name: str) -> bytes:
    """At most one byte more than there may be."""
    try:
        if name == STANDARD_INPUT:
            source = getattr(sys.stdin, "buffer", None)
            whole = MOST_BYTES + 1
            return source.read(whole) if source else sys.stdin.read(whole).encode()
        with Path(name).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise BrokenFileError(
            Fault(name, 0, "", f"nothing readable ({found})", "a file", "check name and rights")
        ) from None


__all__ = ["MOST_BYTES", "BrokenFileError", "Fault", "lines_of", "plain", "read", "read_text"]
