"""What a file of queues put in the place of what, in words."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from portal.display.format import counted, number
from scheduling.services.queues.faults import WORDS, as_typed
from scheduling.services.queues.save import Field, Grid, GridRow

MOST = 12
"""Figures that are named."""
SHAPE = ("path", "namespace", "access_group", "priority")


def sentence(before: Grid, after: Grid, named: set[str]) -> str:
    """Of the queues that were there and that the file names, what is otherwise now; how many it leaves as
    they were. Empty where there was nothing to replace."""
    was = {row.queue.name: row for row in before.rows[1:]}
    moves = [move for row in after.rows[1:] for move in _moves(was.get(row.queue.name), row)]
    more = len(moves) - MOST
    shown = moves[:MOST] + ([f"and {counted(more, 'figure')} more"] if more > 0 else [])
    left = len(was.keys() - named)
    stay = f"{counted(left, 'queue')} that it does not name {'stays' if left == 1 else 'stay'}."
    return " ".join([f"Replaced: {'; '.join(shown)}."] * bool(moves) + [stay] * bool(left))


def _moves(was: GridRow | None, now: GridRow) -> Iterator[str]:
    if was is None:
        return
    name = now.queue.name
    for key in SHAPE:
        old, new = getattr(was.queue, key), getattr(now.queue, key)
        if old != new:
            yield f"{key.replace('_', ' ')} of {name} {_word(old)} → {_word(new)}"
    for gpu_class, values in now.values.items():
        for field in Field:
            old, new = was.values[gpu_class].get(field), values.get(field)
            if old != new:
                yield f"{WORDS[field]} of {name} {_figure(field, old)} → {_figure(field, new)} {gpu_class}"


def _word(value: str | int) -> str:
    return "none" if value == "" else str(value)


def _figure(field: Field, value: int | Decimal | None) -> str:
    typed = as_typed(field, value)
    return "all" if typed is None else number(float(typed), 3)
