"""Microsoft's Philly trace as the Sia artifact publishes it: CSV rows and a list of virtual clusters.

Columns: ``timestamp`` (UTC, "2017-10-09 07:01:55"), ``duration`` (s), ``num_gpus``, ``cluster`` (the
virtual cluster, here a queue); ``user`` is read where present, other columns are ignored.
Beside it, ``philly_vc.csv`` names the virtual clusters that count and their 8-GPU nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from .lines import FIRST_S, LAST_S, LONGEST_S, MOST_GPUS, MOST_NODES, Faults, read_lines, whole
from .model import Ints, Trace

REQUIRED = ("timestamp", "duration", "num_gpus", "cluster")
CLUSTER_FILE = "philly_vc.csv"

Sort = Callable[[Ints], Ints]
"""Positions of what it is given in ascending order."""


def in_file_order(at_s: Ints) -> Ints:
    return np.argsort(at_s, kind="stable")


@dataclass(slots=True)
class Rows:
    """Columns while reading: instants as POSIX seconds, the rest as in the file."""

    at_s: list[int] = field(default_factory=list)
    duration_s: list[int] = field(default_factory=list)
    gpus: list[int] = field(default_factory=list)
    queue: list[str] = field(default_factory=list)
    user: list[str] = field(default_factory=list)


def read_philly(
    file: Path,
    *,
    begin: datetime | None = None,
    end: datetime | None = None,
    sort: Sort | None = None,
) -> Trace:
    """The trace in a CSV file (``.gz`` or not), only rows with ``begin <= timestamp <= end``.

    Rows are sorted by timestamp, equal ones in the order of the file or as ``sort`` puts them; durations are
    rounded half to even and are at least 1 s; submit times count from the first job kept. With a list of
    virtual clusters beside the file, only their jobs count.
    Raises TraceError with every fault of the file (up to 20); then nothing is imported.
    """
    rows = read_rows(file)
    clusters_file = file.with_name(CLUSTER_FILE)
    clusters = read_clusters(clusters_file) if clusters_file.exists() else {}
    names = tuple(clusters) or tuple(sorted(set(rows.queue)))
    at_s = np.array(rows.at_s, dtype=np.int64)
    keep = in_window(at_s, begin, end) & np.isin(np.array(rows.queue, dtype=str), names)
    order = (sort or in_file_order)(at_s)
    order = order[keep[order]]
    first_s = int(at_s[order[0]]) if len(order) else 0
    users = tuple(sorted(set(rows.user)))
    return Trace(
        name="philly",
        origin=datetime.fromtimestamp(first_s, UTC),
        submit_s=at_s[order] - first_s,
        duration_s=np.array(rows.duration_s, dtype=np.int64)[order],
        gpus=np.array(rows.gpus, dtype=np.int64)[order],
        queue=positions(rows.queue, names)[order],
        user=positions(rows.user, users)[order],
        index=order,
        queues=names,
        users=users,
        files=(file, clusters_file) if clusters else (file,),
        queue_nodes=clusters,
        left_out=len(at_s) - len(order),
    )


def in_window(at_s: Ints, begin: datetime | None, end: datetime | None) -> np.ndarray:
    keep = np.ones(len(at_s), dtype=bool)
    if begin is not None:
        keep &= at_s >= begin.timestamp()
    if end is not None:
        keep &= at_s <= end.timestamp()
    return keep


def positions(values: Sequence[str], names: Sequence[str]) -> Ints:
    """Where each value stands in ``names``; -1 for one that is not there."""
    place = {name: i for i, name in enumerate(names)}
    return np.array([place.get(value, -1) for value in values], dtype=np.int64)


def read_rows(file: Path) -> Rows:
    faults = Faults(file)
    lines = read_lines(file, faults)
    number, header = next(lines, (1, ""))
    columns = [name.strip() for name in header.split(",")]
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        faults.fail(number, repr(header[:200]), f"a header with {', '.join(REQUIRED)}")
    place = [columns.index(name) for name in REQUIRED]
    user = columns.index("user") if "user" in columns else None
    rows = Rows()
    for number, line in lines:
        cells = line.split(",")
        if len(cells) != len(columns):
            faults.add(
                number, f"{len(cells)} in {line[:60]!r}", f"{len(columns)} comma-separated fields"
            )
            continue
        read_row(
            rows, [cells[i] for i in place], "" if user is None else cells[user], number, faults
        )
    faults.raise_if_any()
    return rows


def read_row(rows: Rows, cells: list[str], user: str, number: int, faults: Faults) -> None:
    timestamp, duration, gpus, cluster = cells
    before = len(faults.found)
    at_s = parse_instant(timestamp)
    if at_s is None:
        faults.add(number, f"timestamp {timestamp[:60]!r}", "a time such as 2017-10-09 07:01:55")
    duration_s = parse_duration(duration)
    if duration_s is None:
        faults.add(number, f"duration {duration[:60]!r}", "seconds, zero or more")
    elif duration_s > LONGEST_S:
        faults.add(number, f"duration {duration[:60]!r}", f"at most {LONGEST_S:,} seconds")
    count = whole(gpus, 1, MOST_GPUS)
    if count is None:
        bound = (
            f"at most {MOST_GPUS:,} GPUs"
            if gpus.strip("0123456789") == "" and gpus.strip("0")
            else "a whole number of GPUs, 1 or more"
        )
        faults.add(number, f"num_gpus {gpus[:60]!r}", bound)
    if not cluster.strip():
        faults.add(number, "an empty cluster", "the name of a virtual cluster")
    if len(faults.found) > before or at_s is None or duration_s is None or count is None:
        return
    rows.at_s.append(at_s)
    rows.duration_s.append(duration_s)
    rows.gpus.append(count)
    rows.queue.append(cluster.strip())
    rows.user.append(user)


def parse_instant(text: str) -> int | None:
    """POSIX seconds of an ISO time; one without an offset is UTC. None for none from 1971 to 2199."""
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    at_s = int((instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp())
    return at_s if FIRST_S <= at_s < LAST_S else None


def parse_duration(text: str) -> int | None:
    """Whole seconds, half to even (Python's ``round``), at least 1."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    if not 0 <= seconds < 2**40:
        return None
    return max(1, round(seconds))


def read_clusters(file: Path) -> dict[str, int]:
    """Virtual cluster -> 8-GPU nodes, from a CSV with a header line."""
    faults = Faults(file)
    lines = read_lines(file, faults)
    next(lines, None)
    clusters: dict[str, int] = {}
    for number, line in lines:
        name, _, nodes = line.partition(",")
        count = whole(nodes, 0, MOST_NODES)
        if not name.strip() or count is None:
            faults.add(number, repr(line[:60]), "a virtual cluster and its whole number of nodes")
            continue
        clusters[name.strip()] = count
    faults.raise_if_any()
    return clusters
