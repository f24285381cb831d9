"""When its author lets work start: not before a time, after other work, so many of an array at once.

It stands in annotations, whatever the kind. What is written wrongly is a fault with its remedy: left out, the
work would start sooner than its author wants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.quantities import instant, rfc3339, whole

MOST_AFTER = 20
"""Workloads that one may start after."""
LONGEST_ARRAY = 63
NAME = re.compile(r"(?:[a-z]{1,63}/)?[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?")
"""A name, with the kind in lower case before it where that is no Job."""
SUCCEEDED, ENDED = "succeeded", "ended"


@dataclass(frozen=True, slots=True)
class After:
    """Other work of the same namespace and queue that has to have ended."""

    name: str
    success: bool = True
    """It has to have succeeded; else any end will do."""

    def __str__(self) -> str:
        return self.name if self.success else f"{self.name}:{ENDED}"

    def key_in(self, namespace: str) -> str:
        """The engine's name of it."""
        return f"{namespace}/{self.name.removeprefix('job/')}"


@dataclass(frozen=True, slots=True)
class Turn:
    not_before: datetime | None = None
    after: tuple[After, ...] = ()
    array: str = ""
    """Members of one array share this name, their namespace and their queue."""
    index: int = 0
    at_once: int | None = None
    """Members of its array that may hold GPUs at once; None: as many as there are."""

    def document(self) -> dict[str, Any]:
        """As a row keeps it; empty for nearly all."""
        said: dict[str, Any] = {
            "not_before": rfc3339(self.not_before) if self.not_before else "",
            "after": [str(one) for one in self.after],
            "array": self.array,
            "index": self.index if self.array else 0,
            "at_once": self.at_once,
        }
        return {name: value for name, value in said.items() if value} if self else {}

    def __bool__(self) -> bool:
        return bool(self.not_before or self.after or self.array)


NO_TURN = Turn()


class TurnError(ValueError):
    """What stands in an annotation is none of what it may be: ``note``, what is wrong, and the remedy."""

    def __init__(self, note: str, sentence: str, remedy: str) -> None:
        super().__init__(f"{sentence} {remedy}")
        self.note, self.sentence, self.remedy = note, sentence, remedy


def read(notes: Mapping[str, str]) -> Turn:
    """What ``notes`` say; what cannot be read counts as left out, and ``fault`` says so."""
    if labels.TURN.isdisjoint(notes):
        return NO_TURN
    try:
        return parsed(notes)
    except TurnError:
        return NO_TURN


def fault(notes: Mapping[str, str]) -> str:
    """What of ``notes`` cannot be read, with the remedy; else empty."""
    if labels.TURN.isdisjoint(notes):
        return ""
    try:
        parsed(notes)
    except TurnError as wrong:
        return str(wrong)
    return ""


def parsed(notes: Mapping[str, str]) -> Turn:
    """Raises TurnError for what makes no sense."""
    array = notes.get(labels.ARRAY, "")
    if len(array) > LONGEST_ARRAY or (array and not NAME.fullmatch(array)):
        raise TurnError(
            labels.ARRAY,
            f"{array[:80]!r} is no name of an array.",
            f"Use lower-case letters, digits and '-', at most {LONGEST_ARRAY}.",
        )
    return Turn(
        not_before=_not_before(notes.get(labels.NOT_BEFORE, "")),
        after=_after(notes.get(labels.AFTER, "")),
        array=array,
        index=whole(notes.get(labels.ARRAY_INDEX)) or 0,
        at_once=_at_once(notes.get(labels.ARRAY_AT_ONCE, "")),
    )


def _not_before(text: str) -> datetime | None:
    when = instant(text)
    if text and when is None:
        raise TurnError(
            labels.NOT_BEFORE,
            f"{text[:40]!r} is no time to start at.",
            "Write one such as 2026-12-01T18:00:00+01:00.",
        )
    return when


def _after(text: str) -> tuple[After, ...]:
    found = tuple(dict.fromkeys(_each_after(text)))
    if len(found) > MOST_AFTER:
        raise TurnError(
            labels.AFTER,
            f"It is to start after {len(found)} workloads, and {MOST_AFTER} is the most.",
            "Have one of them start after the others, and this one after that.",
        )
    return found


def _each_after(text: str) -> Iterator[After]:
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, how = part.partition(":")
        if not NAME.fullmatch(name) or how not in ("", SUCCEEDED, ENDED):
            raise TurnError(
                labels.AFTER,
                f"{part[:80]!r} is no workload to start after.",
                f"Name each, with commas between: train-a, or train-a:{ENDED} where any end will do.",
            )
        yield After(name, how != ENDED)


def _at_once(text: str) -> int | None:
    most = whole(text)
    if text and not most:
        raise TurnError(
            labels.ARRAY_AT_ONCE,
            f"{text[:40]!r} is no number of members that may run at once.",
            "Write a whole number from 1 on, or leave it out.",
        )
    return most
