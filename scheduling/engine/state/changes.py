"""Slots whose place among those that wait, or among those that run, has to be found anew."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.state.order import FRESH, Ordering


@inner
def note_pending(ordering: Ordering, w: int) -> None:
    """``w`` became pending, or what its place in line rests on has changed."""
    if ordering.changes.pending_state[w] != FRESH:
        ordering.changes.pending_state[w] = FRESH
        ordering.changes.pending[ordering.changes.pending_size[0]] = w
        ordering.changes.pending_size[0] += 1


def note_all_pending(ordering: Ordering, slots: Ints) -> None:
    """Put all pending ``slots`` into an empty line."""
    ordering.changes.pending_state[slots] = FRESH
    ordering.changes.pending[: slots.size] = slots
    ordering.changes.pending_size[0] = slots.size


@inner
def note_running(ordering: Ordering, w: int) -> None:
    """``w`` runs from now on."""
    if ordering.changes.running_state[w] != FRESH:
        ordering.changes.running_state[w] = FRESH
        ordering.changes.running[ordering.changes.running_size[0]] = w
        ordering.changes.running_size[0] += 1


def note_all_running(ordering: Ordering, slots: Ints) -> None:
    """All ``slots`` that run, into an empty list."""
    ordering.changes.running_state[slots] = FRESH
    ordering.changes.running[: slots.size] = slots
    ordering.changes.running_size[0] = slots.size
