"""Readers of recorded cluster histories."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from .ledger import read_ledger
from .model import Trace, TraceError, TraceFault, TraceJob, gang
from .philly import Sort, in_file_order, read_philly
from .swf import read_swf

__all__ = ["Trace", "TraceError", "TraceFault", "TraceJob", "gang", "in_file_order", "read_trace"]

LEDGER = (".ledger.csv", ".ledger.csv.gz")
SWF = (".swf", ".swf.gz")
ENDINGS = (*LEDGER, ".csv", ".csv.gz", *SWF)


def read_trace(
    file: Path,
    *,
    begin: datetime | None = None,
    end: datetime | None = None,
    sort: Sort | None = None,
) -> Trace:
    """The trace in ``file``, whose name ends in one of ``ENDINGS``: Weir's own, Philly's columns, or the
    Standard Workload Format; packed or not.

    ``begin`` and ``end`` (aware, both included) cut a window out of it. ``sort`` orders equal submit times of
    Philly's, which else stay as in the file. Raises TraceError when a line in it is broken.
    """
    if file.name.endswith(LEDGER):
        return read_ledger(file, begin=begin, end=end)
    if file.name.endswith(SWF):
        return read_swf(file, begin=begin, end=end)
    return read_philly(file, begin=begin, end=end, sort=sort)
