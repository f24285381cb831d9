"""``python -m scheduling.engine``: compile the kernels now, so that no first plan waits for it."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import Any

from numba.core import event

from scheduling.engine import GpuClass, Snapshot, plan
from scheduling.engine.compile.stamp import reached
from scheduling.engine.cycle.one_pass import plan_world

EVERY_S = 1.0


class Progress(event.Listener):
    """Says how many of the functions in a plan are compiled."""

    def __init__(self) -> None:
        self._all = {
            one.__qualname__ for one in reached(getattr(plan_world, "py_func", plan_world))
        }
        self._done: set[str] = set()
        self._said_s = 0.0

    def on_start(self, event: Any) -> None:
        """It ends first, with all that it calls."""

    def on_end(self, event: Any) -> None:
        self._done |= self._all & {event.data["dispatcher"].py_func.__qualname__}
        if time.monotonic() - self._said_s >= EVERY_S or self._done == self._all:
            self._said_s = time.monotonic()
            sys.stderr.write(f"compiled {len(self._done)} of {len(self._all)} functions\n")


def main() -> None:
    with event.install_listener("numba:compile", Progress()):
        plan(Snapshot(now=datetime(2026, 1, 1, tzinfo=UTC), gpu_classes=(GpuClass("gpu"),)))


main()
