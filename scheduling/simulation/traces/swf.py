"""The Standard Workload Format of the Parallel Workloads Archive: 18 columns, ``;`` before comments.

Processors are read as GPUs. Some files append a queue name and a node specification; the name, where present,
is the queue, else column 15 is. Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from .lines import LAST_S, LONGEST_S, MOST_GPUS, MOST_NODES, Faults, read_lines, whole
from .model import Ints, Trace
from .philly import in_window, positions

COLUMNS = {
    2: "submit time",
    4: "run time",
    5: "allocated processors",
    8: "requested processors",
    9: "requested time",
}
MOST = {2: LONGEST_S, 4: LONGEST_S, 5: MOST_GPUS, 8: MOST_GPUS, 9: LONGEST_S}
HEADERS = {"MaxProcs": MOST_GPUS * 8, "MaxNodes": MOST_NODES, "UnixStartTime": LAST_S - LONGEST_S}
"""The most that each of these numbers may be."""
USER, QUEUE, EXTRA_QUEUE = 12, 15, 20
GPUS_PER_NODE = 8
HEADER = re.compile(r";\s*(MaxProcs|MaxNodes|UnixStartTime):\s*(\d+)")


@dataclass(slots=True)
class Columns:
    """What has been read so far; seconds as the file counts them."""

    at_s: list[int] = field(default_factory=list)
    duration_s: list[int] = field(default_factory=list)
    gpus: list[int] = field(default_factory=list)
    queue: list[str] = field(default_factory=list)
    user: list[str] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    asked_s: list[int] = field(default_factory=list)
    header: dict[str, int] = field(default_factory=dict)
    rows: int = 0


def read_swf(file: Path, *, begin: datetime | None = None, end: datetime | None = None) -> Trace:
    """The trace in an SWF file (``.gz`` or not), only jobs submitted with ``begin <= submit <= end``.

    Jobs without a run time or a size (cancelled before they ran, -1 in the file) are left out and counted.
    Submit times count from the first job kept. Raises TraceError with every fault (up to 20).
    """
    columns = read_columns(file)
    start_s = columns.header.get("UnixStartTime", 0)
    at_s = np.array(columns.at_s, dtype=np.int64) + start_s
    order = np.argsort(at_s, kind="stable")
    order = order[in_window(at_s, begin, end)[order]]
    first_s = int(at_s[order[0]]) if len(order) else 0
    queues, users = tuple(sorted(set(columns.queue))), tuple(sorted(set(columns.user)))
    processors = columns.header.get("MaxProcs") or columns.header.get("MaxNodes")

    def column(values: list[int]) -> Ints:
        return np.array(values, dtype=np.int64)[order]

    return Trace(
        name=file.name.partition(".swf")[0],
        origin=datetime.fromtimestamp(first_s, UTC),
        submit_s=at_s[order] - first_s,
        duration_s=column(columns.duration_s),
        gpus=column(columns.gpus),
        queue=positions(columns.queue, queues)[order],
        user=positions(columns.user, users)[order],
        index=column(columns.index),
        queues=queues,
        users=users,
        files=(file,),
        nodes=math.ceil(processors / GPUS_PER_NODE) if processors else None,
        gpus_per_node=GPUS_PER_NODE,
        left_out=columns.rows - len(order),
        asked_s=column(columns.asked_s),
    )


def read_columns(file: Path) -> Columns:
    faults = Faults(file)
    columns = Columns()
    for number, line in read_lines(file, faults):
        if line.lstrip().startswith(";"):
            note = HEADER.match(line.lstrip())
            if note:
                read_header(columns, note[1], note[2], number, faults)
            continue
        cells = line.split()
        if len(cells) < 18:
            faults.add(number, f"{len(cells)} in {line[:60]!r}", "18 fields between spaces")
            continue
        read_job(columns, cells, number, faults)
        columns.rows += 1
    faults.raise_if_any()
    return columns


def read_header(columns: Columns, name: str, text: str, number: int, faults: Faults) -> None:
    value = whole(text, 0, HEADERS[name])
    if value is None:
        faults.add(number, f"{name} {text[:60]}", f"a whole number, at most {HEADERS[name]:,}")
    else:
        columns.header[name] = value


def read_job(columns: Columns, cells: list[str], number: int, faults: Faults) -> None:
    values: dict[int, int] = {}
    for place, name in COLUMNS.items():
        try:
            values[place] = round(float(cells[place - 1]))
        except (ValueError, OverflowError):
            faults.add(number, f"{name} {cells[place - 1][:60]!r}", f"a number in column {place}")
            return
        if values[place] > MOST[place]:
            found = f"{name} {cells[place - 1][:60]}"
            faults.add(number, found, f"at most {MOST[place]:,} in column {place}")
            return
    if values[2] < 0:
        faults.add(number, f"submit time {values[2]}", "seconds, zero or more, in column 2")
        return
    processors = values[8] if values[8] > 0 else values[5]
    if values[4] < 0 or processors <= 0:
        return
    named = len(cells) >= EXTRA_QUEUE and cells[EXTRA_QUEUE - 2].startswith("{")
    columns.at_s.append(values[2])
    columns.duration_s.append(max(1, values[4]))
    columns.gpus.append(processors)
    columns.queue.append(cells[EXTRA_QUEUE - 1] if named else queue_name(cells[QUEUE - 1]))
    columns.user.append("" if cells[USER - 1] == "-1" else f"user-{cells[USER - 1]}")
    columns.index.append(columns.rows)
    columns.asked_s.append(max(0, values[9]))


def queue_name(number: str) -> str:
    """A file that knows no queues says -1 for each job: one queue for all."""
    return "default" if number == "-1" else f"queue-{number}"
