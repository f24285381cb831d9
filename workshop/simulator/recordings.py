"""Any recording that a replay is given: a trace that the product reads, a list of Kubernetes objects, or a
folder with one of these."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from scheduling.simulation.traces import Trace, TraceError, TraceFault, read_trace
from scheduling.simulation.traces.philly import CLUSTER_FILE, Sort
from workshop.simulator.kubernetes import read_kubernetes

JSON = ".json"
KNOWN = (".csv", ".csv.gz", ".swf", ".swf.gz", JSON)


def read_recorded(
    path: Path,
    *,
    begin: datetime | None = None,
    end: datetime | None = None,
    sort: Sort | None = None,
) -> Trace:
    """As ``read_trace``, which says what the others are. Raises TraceError also where there is no such file,
    or more than one to choose from."""
    file = _find(path)
    if file.name.endswith(JSON):
        return read_kubernetes(file, begin=begin, end=end)
    return read_trace(file, begin=begin, end=end, sort=sort)


def _find(path: Path) -> Path:
    if not path.is_dir():
        if not path.name.endswith(KNOWN):
            raise TraceError(
                [TraceFault(str(path), 0, path.name, "a name that ends in " + _ending())]
            )
        return path
    files = sorted(
        entry
        for entry in path.iterdir()
        if entry.name.endswith(KNOWN) and entry.name != CLUSTER_FILE
    )
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise TraceError([TraceFault(str(path), 0, found, "exactly one trace file, " + _ending())])
    return files[0]


def _ending() -> str:
    return ", ".join(KNOWN[:-1]) + " or " + KNOWN[-1]
