"""The lines of fields in a YAML or JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from yaml import events as e

from .structured import parse_events


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
