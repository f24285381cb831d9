"""What jobs of an SWF file asked for before they ran, and when they ended: what a predictor sees, and when.

Columns beyond those of ``swf``: wait (3), requested time (9) and memory (10), group (13), partition (16).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scheduling.simulation.traces.lines import Faults, read_lines
from scheduling.simulation.traces.swf import EXTRA_QUEUE, queue_name

SUBMIT, WAIT, RUN, PROCESSORS, ASKED, LIMIT, MEMORY = 1, 2, 3, 4, 7, 8, 9
USER, GROUP, QUEUE, PARTITION = 11, 12, 14, 15
KIB_PER_GIB = 2**20
BYTES_PER_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Request:
    """One job: seconds as the file counts them; ``limit_s`` zero where it asked for no time."""

    user: str
    group: str
    queue: str
    processors: int
    memory_gib: float
    limit_s: int
    submit_s: int
    ran_s: int
    end_s: int


def read_requests(file: Path) -> list[Request]:
    """Jobs that ran, in submit order, equal times in the order of the file. Raises TraceError."""
    faults = Faults(file)
    found = list(_requests(file, faults))
    faults.raise_if_any()
    return sorted(found, key=lambda request: request.submit_s)


def _requests(file: Path, faults: Faults) -> Iterator[Request]:
    for number, line in read_lines(file, faults):
        if line.lstrip().startswith(";"):
            continue
        cells = line.split()
        try:
            values = [round(float(cell)) for cell in cells[:18]]
        except (ValueError, OverflowError):
            values = []
        if len(values) < 18:
            faults.add(number, line[:60], "18 numbers between spaces")
        elif values[RUN] >= 0:
            yield _request(values, cells)


def _request(values: list[int], cells: list[str]) -> Request:
    ran_s = max(1, values[RUN])
    named = len(cells) >= EXTRA_QUEUE and cells[EXTRA_QUEUE - 2].startswith("{")
    queue = cells[EXTRA_QUEUE - 1] if named else queue_name(cells[QUEUE])
    return Request(
        user=str(values[USER]),
        group=str(values[GROUP]),
        queue=f"{queue}/{values[PARTITION]}",
        processors=max(1, values[ASKED] if values[ASKED] > 0 else values[PROCESSORS]),
        memory_gib=_memory_gib(values[MEMORY]),
        limit_s=max(0, values[LIMIT]),
        submit_s=values[SUBMIT],
        ran_s=ran_s,
        end_s=values[SUBMIT] + max(0, values[WAIT]) + ran_s,
    )


def _memory_gib(amount: int) -> float:
    """The format says KiB a processor; one file of ours counts bytes, which as KiB would be petabytes."""
    per = BYTES_PER_GIB if amount > 2**24 else KIB_PER_GIB
    return max(0, amount) / per
