"""Sentences of the engine as pages tell them: instants in the reader's own time, and no figure that stands
beside them already. What is kept, the API and exports have them whole, in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from portal.display.format import duration, number, when
from scheduling.services.words.sentences import INSTANT, LOSS


def pieces(sentence: str) -> Iterator[str | datetime]:
    """``sentence`` in turn: its text, and the instants in it as aware UTC."""
    end = 0
    for found in INSTANT.finditer(sentence):
        try:
            at = datetime.strptime(found[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        except ValueError:
            continue
        yield sentence[end : found.start()]
        yield at
        end = found.end()
    yield sentence[end:]


def local(sentence: str, now: datetime, zone: str) -> str:
    """``sentence`` with its instants as ``when`` tells them, for titles and other plain text."""
    parts = pieces(sentence)
    return "".join(part if isinstance(part, str) else when(part, now, zone) for part in parts)


def tells_time(sentence: str) -> bool:
    """Whether it names an instant."""
    return INSTANT.search(sentence) is not None


def without_loss(sentence: str) -> str:
    """``sentence`` of an act without the work that it lost."""
    return LOSS.sub("", sentence)


def before_first_plan(interval_s: float, speed: float) -> str:
    """Why what was just submitted has no reason yet: cycles are ``interval_s`` of the wall apart, and the
    cluster's clock runs ``speed`` times as fast as that."""
    said = "The next cycle of the engine decides; its reason will stand here."
    if speed <= 1:
        return said
    apart = duration(interval_s * speed)
    return (
        f"{said} This clock runs {number(speed)} times as fast as the wall’s, so cycles are at least"
        f" {apart} of it apart."
    )


def and_list(words: Iterable[str]) -> str:
    """['a', 'b', 'c'] -> 'a, b and c'; nothing is empty."""
    names = list(words)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
