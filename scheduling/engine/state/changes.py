"""Slots whose place among those that wait, or among those that run, has to be found anew."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.state.order import FRESH, STARTED, Line


@inner
def enlist(line: Line, w: int) -> None:
    """``w`` became pending, or what its place in line rests on has changed."""
    if line.state[w] != FRESH:
        line.state[w] = FRESH
        line.fresh[line.count[1]] = w
        line.count[1] += 1


def list_afresh(line: Line, slots: Ints) -> None:
    """Put all pending ``slots`` into an empty line."""
    line.state[slots] = FRESH
    line.fresh[: slots.size] = slots
    line.count[1] = slots.size


@inner
def join(line: Line, w: int) -> None:
    """``w`` runs from now on."""
    if line.berth[w] != FRESH:
        line.berth[w] = FRESH
        line.started[line.count[STARTED]] = w
        line.count[STARTED] += 1


def join_afresh(line: Line, slots: Ints) -> None:
    """All ``slots`` that run, into an empty list."""
    line.berth[slots] = FRESH
    line.started[: slots.size] = slots
    line.count[STARTED] = slots.size
