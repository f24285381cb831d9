"""Readers of recorded cluster histories."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from .kubernetes import read_kubernetes
from .ledger import read_ledger
from .model import Fault, Trace, TraceError, TraceJob, gang
from .philly import CLUSTER_FILE, Sort, in_file_order, read_philly
from .swf import read_swf

__all__ = [
    "Fault",
    "Trace",
    "TraceError",
    "TraceJob",
    "gang",
    "in_file_order",
    "read_kubernetes",
    "read_ledger",
    "read_philly",
    "read_swf",
    "read_trace",
]

CSV, SWF, JSON = (".csv", ".csv.gz"), (".swf", ".swf.gz"), (".json",)
LEDGER = (".ledger.csv", ".ledger.csv.gz")
KNOWN = CSV + SWF + JSON


def read_trace(
    path: Path,
    *,
    begin: datetime | None = None,
    end: datetime | None = None,
    sort: Sort | None = None,
) -> Trace:
    """The trace at ``path``: a ``.csv`` (of Philly's columns; Weir's own if it ends in ``.ledger.csv``) or a
    ``.swf`` file, packed or not, a ``.json`` of Kubernetes objects, or a folder that holds one of these.

    ``begin`` and ``end`` (aware, both included) cut a window out of it. ``sort`` orders equal
    submit times of a ``.csv``, which else stay as in the file; a ``.swf`` keeps its own. Raises TraceError
    when there is no such file, more than one to choose from, or a line in it is broken.
    """
    file = find_file(path)
    if file.name.endswith(LEDGER):
        return read_ledger(file, begin=begin, end=end)
    if file.name.endswith(JSON):
        return read_kubernetes(file, begin=begin, end=end)
    if file.name.endswith(CSV):
        return read_philly(file, begin=begin, end=end, sort=sort)
    return read_swf(file, begin=begin, end=end)


def find_file(path: Path) -> Path:
    if not path.is_dir():
        if not path.name.endswith(KNOWN):
            raise TraceError([Fault(str(path), 0, path.name, "a name that ends in " + ending())])
        return path
    files = sorted(
        entry
        for entry in path.iterdir()
        if entry.name.endswith(KNOWN) and entry.name != CLUSTER_FILE
    )
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise TraceError([Fault(str(path), 0, found, "exactly one trace file, " + ending())])
    return files[0]


def ending() -> str:
    return ", ".join(KNOWN[:-1]) + " or " + KNOWN[-1]
