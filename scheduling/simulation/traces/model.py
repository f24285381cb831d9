"""What a recorded cluster history is: jobs as a struct of arrays, and how a broken file is reported."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

MAX_FAULTS = 20
"""A reader stops after this many faults: more would bury the first."""


@dataclass(frozen=True, slots=True)
class TraceFault:
    """One place in a file that is not what it should be; ``line`` counts from 1, 0 is the whole file."""

    file: str
    line: int
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: expected {self.expected}, found {self.found}"


class TraceError(ValueError):
    """A trace that cannot be read; nothing of it is imported. One line of the message per fault."""

    def __init__(self, faults: list[TraceFault]) -> None:
        self.faults = faults
        super().__init__("\n".join(str(fault) for fault in faults))


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job: seconds after the trace's origin, run time in seconds, whole GPUs."""

    index: int
    submit_s: int
    duration_s: int
    gpus: int
    queue: str
    user: str

    @property
    def name(self) -> str:
        return f"job-{self.index}"


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs in submit order; equal submit times keep the order of the file.

    ``queue`` and ``user`` are positions in ``queues`` and ``users``; ``index`` is the job's row in the
    file, from 0. ``asked_s`` is the run time each asked for, 0 where it asked for none; None where the file
    cannot say. ``queue_nodes`` is the static partition the trace came with, if it names one (nodes of
    ``gpus_per_node`` GPUs). ``nodes`` is the size of the machine it was recorded on, if the file says so.
    ``left_out`` counts well-formed rows that belong to no listed queue, never ran, or lie outside the window.
    """

    name: str
    origin: datetime
    submit_s: Ints
    duration_s: Ints
    gpus: Ints
    queue: Ints
    user: Ints
    index: Ints
    queues: tuple[str, ...]
    users: tuple[str, ...]
    files: tuple[Path, ...] = ()
    queue_nodes: Mapping[str, int] = field(default_factory=dict)
    nodes: int | None = None
    gpus_per_node: int = 8
    left_out: int = 0
    asked_s: Ints | None = None

    def __len__(self) -> int:
        return len(self.submit_s)

    def __getitem__(self, position: int) -> TraceJob:
        return TraceJob(
            index=int(self.index[position]),
            submit_s=int(self.submit_s[position]),
            duration_s=int(self.duration_s[position]),
            gpus=int(self.gpus[position]),
            queue=self.queues[self.queue[position]],
            user=self.users[self.user[position]],
        )

    def __iter__(self) -> Iterator[TraceJob]:
        return (self[position] for position in range(len(self)))

    @property
    def gpu_seconds(self) -> int:
        return int(self.gpus @ self.duration_s)

    def submitted_at(self, position: int) -> datetime:
        return self.origin + timedelta(seconds=int(self.submit_s[position]))

    def head(self, jobs: int) -> Trace:
        """The first ``jobs`` jobs."""
        return self.take(np.arange(min(jobs, len(self))))

    def take(self, positions: Ints) -> Trace:
        """Only the jobs at these positions (ascending); the origin stays."""
        columns = ["submit_s", "duration_s", "gpus", "queue", "user", "index"]
        if self.asked_s is not None:
            columns.append("asked_s")
        return replace(self, **{name: getattr(self, name)[positions] for name in columns})

    def checksums(self) -> dict[str, str]:
        """File name -> sha256 of the bytes read."""
        return {file.name: checksum(file) for file in self.files}


def checksum(file: Path) -> str:
    """sha256 of the file's bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def gang(gpus: int, per_node: int, nodes: int | None = None) -> int:
    """Members of a job: the fewest equal parts that each fit on one node, and together on ``nodes``, if that
    is known and so many GPUs are there: 249 GPUs are 83 parts of 3, but no 32 nodes of 8 hold those.
    """
    parts = [n for n in range(-(-gpus // per_node), gpus + 1) if gpus % n == 0]
    room = math.inf if nodes is None else nodes
    return next((n for n in parts if n <= room * (per_node // (gpus // n))), parts[0])
