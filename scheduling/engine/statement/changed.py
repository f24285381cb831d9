"""What a plan remembers, and what makes it stale: dropped here and nowhere else.

Remembered are failed searches (``FailedSearches``), what was refused alike (``Refusals``), and what
a milli-GPU costs on each node (``NodeBounds``).
"""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.state.order import Shapes
from scheduling.engine.state.victims import UNRATED, Candidates

ROOM, RETURN, SHARES, TURNS, HOLDING, REACH = 0, 1, 2, 3, 4, 5
"""Somebody left a class, moved in it or stepped back; what was to leave it stays; shares are others; a
turn or nodes are kept, or no more; a leaf holds more than it did; a search looks at other candidates than the
one before.
"""
EVERY = -1
"""In place of a class or a leaf."""


@inner
def changed(candidates: Candidates, shapes: Shapes, event: int, c: int, q: int) -> None:
    """``event`` happened in class ``c`` and leaf ``q``."""
    if event != REACH:
        shapes.refusals.change += 1
    if event == HOLDING:
        candidates.bounds.risen[q] = True
        return
    if event in (ROOM, RETURN, SHARES):
        _forget_failures(candidates, c)
    if event != REACH:
        shapes.refusals.epoch += 1
    if event in (RETURN, SHARES, REACH):
        candidates.bounds.rated[0] = UNRATED


@inner
def _forget_failures(candidates: Candidates, c: int) -> None:
    refused = candidates.failed.slot
    for k in range(refused.shape[0]):
        if c in (EVERY, k):
            for q in range(refused.shape[1]):
                refused[k, q] = -1
