"""Which past run times a rival may compare a job with: its class (queue and GPUs), its queue, all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.compile.structs import Ints
from scheduling.simulation.traces import Trace


class Classes(NamedTuple):
    """Rows of a table of run times: ``own`` and ``queue`` by job; the last of ``rows`` is everything."""

    own: Ints
    queue: Ints
    rows: int


def classes_of(trace: Trace) -> Classes:
    """Classes first, then queues, then all."""
    sizes, size = np.unique(trace.gpus, return_inverse=True)
    both = trace.queue * max(1, len(sizes)) + size
    found, own = np.unique(both, return_inverse=True)
    return Classes(
        own.astype(np.int64),
        (len(found) + trace.queue).astype(np.int64),
        len(found) + len(trace.queues) + 1,
    )
