"""Two letters for each queue, so that a tile says whose it is without its colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def letters(names: Iterable[str]) -> dict[str, str]:
    """Name -> two capitals, no two alike as long as they last: the first ones get what is most like them."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        pair = next((pair for pair in _pairs(name) if pair not in taken), "??")
        taken.add(pair)
        given[name] = pair
    return given


def _pairs(name: str) -> Iterator[str]:
    """Of one word, 'pretraining': PR, PE, PT … P0 to P9; of several, 'search-eval': SE, then as of one."""
    words = [word for word in name.upper().replace("_", "-").split("-") if word]
    if len(words) > 1:
        yield words[0][0] + words[1][0]
    whole = "".join(words)
    yield from (whole[0] + other for other in whole[1:])
    yield from (f"{whole[0]}{digit}" for digit in range(10))
