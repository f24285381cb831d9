"""``python -m scheduling.engine``: compile every kernel now, so that nothing waits for it later.

A kernel is compiled for the types that it is called with, so each is called once, by its own doors.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numba.core import event

from scheduling.engine import GpuClass, Node, PriorityClass, Queue, Snapshot, Workload, encode, plan
from scheduling.engine.compile.stamp import reached
from scheduling.engine.cycle.one_pass import plan_world
from scheduling.engine.merit import gittins, partitions
from scheduling.engine.model import MILLI, Quota

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE = Snapshot(
    now=NOW,
    gpu_classes=(GpuClass("gpu"),),
    priority_classes=(PriorityClass("train"),),
    nodes=(Node("n1", "gpu", MILLI),),
    queues=(Queue("team", quotas={"gpu": Quota(MILLI)}),),
    workloads=(Workload("one", "team", "train", NOW),),
)

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
        plan(ONE)
    _between_plans()
    _on_own_quota()
    _by_expected_end()


def _between_plans() -> None:
    """A workload arrives, starts, moves and leaves, starts where it was promised a seat and ends."""
    frame, seats = encode(ONE), [(0, -1)]
    slot = frame.add_workload(queue=1, submitted=frame.now, gpus=MILLI)
    frame.start_on(slot, 0, seats)
    frame.reseat(slot, seats)
    frame.leave(slot)
    frame.requeue(slot)
    frame.promise(slot, 0, seats)
    frame.forget_promise(slot)
    frame.finish(slot)


def _on_own_quota() -> None:
    tables = partitions.empty_partitions(np.full((1, 1), MILLI), np.full(1, MILLI), 1, 1, 1)
    own = partitions.struct_of(tables)
    partitions.restore_run(own, 0, 0, partitions.UNKNOWN, -1)
    partitions.submit_run(own, 0)
    partitions.end_run(own, 0, 1, 1)
    partitions.play(own, 2)


def _by_expected_end() -> None:
    times = gittins.struct_of(gittins.empty_run_times(1))
    gittins.note_run_times(times, np.zeros(1, np.int64), np.ones(1))
    gittins.indices(times, np.zeros((1, 3), np.int64), np.ones(1), np.zeros(1))


if __name__ == "__main__":
    main()
