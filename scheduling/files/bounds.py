"""Values of a YAML or JSON text, built as the parser goes, so that a bound stops it where it is passed.

PyYAML's own composer first makes a tree of the whole text: brackets inside brackets end the process
there, and lists of lists of aliases cost whoever walks them time without end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import yaml
from yaml import events as e

from .faults import BrokenFileError, Fault

MOST_DEPTH = 64
MOST_VALUES = 5_000_000
MOST_REPEATED = 1_000_000
"""Values that aliases stand for, those inside of what they stand for counted each time."""
MOST_KEYS = 100_000
LONGEST_NUMBER = 400
"""Characters; every number that a field allows is far shorter."""
REMEMBERED = 10_000
"""Scalars whose meaning is kept for when they come again."""

Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
STRING = "tag:yaml.org,2002:str"
MERGE = "tag:yaml.org,2002:merge"
TIMESTAMP = "tag:yaml.org,2002:timestamp"
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
TAGS = {STRING, TIMESTAMP, *NUMBERS, *(f"tag:yaml.org,2002:{t}" for t in ("null", "bool"))}
UNTAGGED = (None, "!")
CANONICAL = {"map": "tag:yaml.org,2002:map", "seq": "tag:yaml.org,2002:seq"}


def read(text: str, name: str) -> Any:
    """What the one document of ``text`` says; ``name`` is the file in what is raised.

    Keys that stand twice, endless or too many values, depth, and tags of other than plain values are
    faults. An instant that no calendar has stays text, so that whoever wants an instant names its field.
    Raises BrokenFileError with one fault.
    """
    return _Reader(text, name).document()


def parse_events(text: str, name: str) -> Iterator[Any]:
    """Events of ``text``. Raises BrokenFileError where it is neither YAML nor JSON."""
    try:
        yield from yaml.parse(text, Loader=Parser)
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "found something else"
        said = problem.removeprefix("found ")
        found = said if said != problem else f"broken syntax ({problem})"
        line = mark.line + 1 if mark else 0
        raise BrokenFileError(
            Fault(name, line, "", found, "YAML or JSON", "mend the syntax there")
        ) from None


class _Values(yaml.resolver.Resolver, yaml.constructor.SafeConstructor):
    """What a scalar means."""

    def __init__(self) -> None:
        yaml.resolver.Resolver.__init__(self)
        yaml.constructor.SafeConstructor.__init__(self)

    def meant(self, text: str, implicit: tuple[bool, bool]) -> str:
        """The tag of an untagged scalar."""
        tag: str = self.resolve(yaml.ScalarNode, text, implicit)  # type: ignore[no-untyped-call] # as published
        return tag


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._events = parse_events(text, name)
        self._values = _Values()
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open: set[str] = set()
        self._count = self._repeats = 0
        self._known: dict[tuple[str, Any, Any], Any] = {}

    def document(self) -> Any:
        next(self._events)  # start of the stream
        if isinstance(next(self._events), e.StreamEndEvent):
            return None
        value = self._value(next(self._events), 0)
        next(self._events)  # end of the document
        after = next(self._events)
        if not isinstance(after, e.StreamEndEvent):
            self._fail(after, "another document", "one document", "give each a file of its own")
        return value

    def _value(self, event: Any, depth: int) -> Any:
        self._count += 1
        if self._count > MOST_VALUES:
            self._fail(event, "more values than that", f"at most {MOST_VALUES:,}", "split the file")
        if isinstance(event, e.AliasEvent):
            return self._repeated(event)
        if depth > MOST_DEPTH:
            self._fail(
                event, "lists inside lists without end", f"at most {MOST_DEPTH} levels",
                "take levels out",
            )  # fmt: skip
        anchor, before = event.anchor, self._count + self._repeats - 1
        if anchor:
            self._open.add(anchor)
        if isinstance(event, e.ScalarEvent):
            value = self._scalar(event)
        elif isinstance(event, e.SequenceStartEvent):
            value = self._sequence(event, depth)
        else:
            value = self._mapping(event, depth)
        if anchor:
            self._open.discard(anchor)
            self._anchors[anchor] = value, self._count + self._repeats - before
        return value

    def _repeated(self, event: Any) -> Any:
        if event.anchor in self._open:
            self._fail(event, f"*{event.anchor} inside itself", "an end", "take the alias out")
        if event.anchor not in self._anchors:
            self._fail(
                event,
                f"*{event.anchor}",
                "the name of an anchor before it",
                f"write &{event.anchor}",
            )
        value, weight = self._anchors[event.anchor]
        self._repeats += weight
        if self._repeats > MOST_REPEATED:
            self._fail(
                event, "aliases of aliases without end", f"at most {MOST_REPEATED:,} values by alias",
                "write out what the aliases stand for",
            )  # fmt: skip
        return value

    def _sequence(self, event: Any, depth: int) -> list[Any]:
        self._untagged(event, CANONICAL["seq"])
        items = []
        while not isinstance(item := next(self._events), e.SequenceEndEvent):
            items.append(self._value(item, depth + 1))
        return items

    def _mapping(self, event: Any, depth: int) -> dict[Any, Any]:
        self._untagged(event, CANONICAL["map"])
        found: dict[Any, Any] = {}
        while not isinstance(at := next(self._events), e.MappingEndEvent):
            key = self._key(at, depth)
            if key in found:
                self._fail(at, f"key {key!r} twice", "each key once", "take one of them out")
            if len(found) >= MOST_KEYS:
                self._fail(at, "more keys than that", f"at most {MOST_KEYS:,}", "take keys out")
            found[key] = self._value(next(self._events), depth + 1)
        return found

    def _key(self, event: Any, depth: int) -> Any:
        if not isinstance(event, e.ScalarEvent | e.AliasEvent):
            self._fail(event, "lists or keys as a key", "a key that is text", "write a name")
        key = self._value(event, depth + 1)
        if isinstance(key, list | dict):
            self._fail(event, f"*{event.anchor} as a key", "a key that is text", "write a name")
        return key

    def _untagged(self, event: Any, own: str) -> None:
        if event.tag not in (*UNTAGGED, own):
            self._fail(event, f"the tag {event.tag}", "none", "take the tag out")

    def _scalar(self, event: Any) -> Any:
        key = (event.value, event.tag, event.implicit)
        if key in self._known:
            return self._known[key]
        value = self._meaning(event)
        if len(self._known) < REMEMBERED:
            self._known[key] = value
        return value

    def _meaning(self, event: Any) -> Any:
        text, tag = event.value, event.tag
        if tag in UNTAGGED:
            tag = self._values.meant(text, event.implicit)
        if tag == STRING:
            return text
        if tag == MERGE:
            self._fail(event, "a merge key <<", "keys", "write out what it stands for")
        if tag not in TAGS:
            self._fail(event, f"the tag {tag}", "a plain value", "take the tag out")
        if tag in NUMBERS and len(text) > LONGEST_NUMBER:
            self._fail(
                event, f"a number of {len(text)} characters", f"at most {LONGEST_NUMBER}",
                "write a shorter one",
            )  # fmt: skip
        try:
            return self._values.construct_object(yaml.ScalarNode(tag, text))
        except (ValueError, OverflowError, KeyError, AttributeError, yaml.YAMLError) as error:
            if tag == TIMESTAMP:
                return text
            self._fail(
                event, f"a tag that belies its value ({text[:40]!r}: {error})", "what the tag says",
                "take the tag out",
            )  # fmt: skip

    def _fail(self, event: Any, found: str, expected: str, remedy: str) -> NoReturn:
        line = event.start_mark.line + 1
        raise BrokenFileError(Fault(self._name, line, "", found, expected, remedy))
