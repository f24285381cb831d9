"""Tables as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from scheduling.models import MILLI, Workload

COLUMNS = [
    "uid",
    "name",
    "namespace",
    "queue",
    "user",
    "priority_class",
    "type",
    "state",
    "outcome",
    "held",
    "position",
    "reason",
    "sentence",
    "gpus_requested",
    "gpus_allocated",
    "gpu_class",
    "submitted_at",
    "started_at",
    "finished_at",
    "evictions",
    "gpu_hours_of_ended_runs",
    "gpu_hours_lost",
]


def csv_of(workloads: QuerySet[Workload], name: str) -> StreamingHttpResponse:
    """All of ``workloads`` as a download, row by row."""
    lines = _lines(workloads)
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def safe(cell: Any) -> str:
    """``cell`` as text that no spreadsheet takes for a formula.

    >>> safe("=1+1"), safe(-5), safe(None)
    ("'=1+1", '-5', '')
    """
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat().replace("+00:00", "Z")
    text = str(cell)
    risky = isinstance(cell, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{text}" if risky else text


class _Echo:
    """A file whose writes are handed straight back."""

    def write(self, value: str) -> str:
        return value


def _lines(workloads: QuerySet[Workload]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(COLUMNS)
    for work in workloads.iterator(chunk_size=500):
        yield writer.writerow([safe(cell) for cell in _cells(work)])


def _cells(work: Workload) -> tuple[Any, ...]:
    return (
        work.uid,
        work.name,
        work.namespace,
        work.queue.path if work.queue else work.queue_label,
        work.user,
        work.priority_class,
        work.type,
        work.state,
        work.outcome,
        work.held,
        work.position,
        work.reason,
        work.sentence,
        work.requested_gpus / MILLI,
        work.allocated_gpus / MILLI,
        work.gpu_class,
        work.submitted_at,
        work.started_at,
        work.finished_at,
        work.eviction_count,
        round(work.used_gpu_s / 3600, 4),
        round(work.lost_gpu_s / 3600, 4),
    )
