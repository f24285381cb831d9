"""Which past run times a rival may compare a job with: its class (queue and GPUs), its queue, all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.merit.gittins import empty_run_times, known_row, note_run_time, struct_of
from scheduling.simulation.traces import Trace

from .running import Work


class Past(NamedTuple):
    """Rows of ``times``, a table of run times that ended: ``own`` and ``queue`` by job; the last of ``rows``
    is everything."""

    own: Ints
    queue: Ints
    rows: int
    times: Any


def new_past(trace: Trace) -> Past:
    """Nothing has ended. Classes come first, then queues, then all."""
    sizes, size = np.unique(trace.gpus, return_inverse=True)
    both = trace.queue * max(1, len(sizes)) + size
    found, own = np.unique(both, return_inverse=True)
    rows = len(found) + len(trace.queues) + 1
    return Past(
        own.astype(np.int64),
        (len(found) + trace.queue).astype(np.int64),
        rows,
        struct_of(empty_run_times(rows)),
    )


@inner
def learn(job: int, work: Work, past: Past) -> None:
    """It has ended."""
    for row in (past.own[job], past.queue[job], past.rows - 1):
        note_run_time(past.times, row, float(work.duration_s[job]))


@inner
def known_of(job: int, past: Past) -> int:
    """The row of its class, of its queue while that knows too few, else of all."""
    return known_row(past.times, past.own[job], past.queue[job], past.rows - 1)
