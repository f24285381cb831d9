"""The list of workloads as CSV."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpResponse

from portal.reports.tables import Cell, Table, csv_lines
from scheduling.models import MILLI, Workload

COLUMNS = (
    *("uid", "name", "namespace", "queue", "user", "priority_class", "type", "state", "outcome"),
    *("held", "position", "reason", "sentence", "gpus_requested", "gpus_allocated", "gpu_class"),
    *("submitted_at", "started_at", "finished_at", "evictions"),
    *("gpu_hours_of_ended_runs", "gpu_hours_lost"),
)


def csv_of(workloads: QuerySet[Workload], name: str) -> HttpResponse:
    """All of ``workloads`` as a download, in the order of their submission."""
    whole = workloads.select_related("queue", "gpu_class", "priority_class")
    rows = [_cells(work) for work in whole.order_by("submitted_at", "id").iterator(chunk_size=2000)]
    lines = csv_lines(Table("workloads", "Workloads", COLUMNS, rows))
    response = HttpResponse("".join(lines), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _cells(work: Workload) -> tuple[Cell, ...]:
    return (
        work.uid,
        work.name,
        work.namespace,
        work.queue.path if work.queue else work.queue_label,
        work.user,
        work.priority_class.name if work.priority_class else None,
        work.type,
        work.state,
        work.outcome,
        "held" if work.held else None,
        work.position,
        work.reason,
        work.sentence,
        work.requested_gpus / MILLI,
        work.allocated_gpus / MILLI,
        work.gpu_class.name if work.gpu_class else None,
        work.submitted_at,
        work.started_at,
        work.finished_at,
        work.eviction_count,
        round(work.used_gpu_s / 3600, 4),
        round(work.lost_gpu_s / 3600, 4),
    )
