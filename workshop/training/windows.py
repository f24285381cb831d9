"""Windows of recorded work: what is trained on and what is judged on never share a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from scheduling.simulation.traces import Trace


class SharedWindowError(ValueError):
    """Somebody is to be judged on work that was trained on. The message names both windows."""


@dataclass(frozen=True, slots=True)
class Window:
    """Work of one recording, submitted with ``begin <= submit < end``, on an empty cluster of ``nodes``."""

    name: str
    trace: Trace
    nodes: int
    begin: datetime
    end: datetime

    def shares_with(self, other: Window) -> bool:
        """Whether both have a moment of the same recording."""
        same = set(self.trace.files) == set(other.trace.files)
        return same and self.begin < other.end and other.begin < self.end


def cut(name: str, trace: Trace, nodes: int, begin: datetime, end: datetime) -> Window:
    """That part of ``trace``; its clock begins at ``begin``. Raises ValueError if it is empty."""
    from_s, to_s = ((at - trace.origin).total_seconds() for at in (begin, end))
    part = trace.take(np.flatnonzero((trace.submit_s >= from_s) & (trace.submit_s < to_s)))
    if not len(part):
        raise ValueError(f"{name}: nothing was submitted then; widen the window")
    return Window(name, moved(part, begin), nodes, begin, end)


def whole(name: str, trace: Trace, nodes: int) -> Window:
    """All of ``trace``."""
    last = trace.origin + timedelta(seconds=int(trace.submit_s.max(initial=0)) + 1)
    return Window(name, trace, nodes, trace.origin, last)


def moved(trace: Trace, origin: datetime) -> Trace:
    """The same moments, counted from ``origin`` in whole seconds."""
    shift_s = round((trace.origin - origin).total_seconds())
    return replace(trace, origin=origin, submit_s=trace.submit_s + shift_s)


def keep_apart(trained: Sequence[Window], judged: Sequence[Window]) -> None:
    """Raises SharedWindowError if any two share a moment of one recording."""
    for one in trained:
        for other in judged:
            if one.shares_with(other):
                raise SharedWindowError(
                    f"{other.name} has work of {one.name}, which was trained on: judge on later work"
                )
