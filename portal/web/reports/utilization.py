"""What the page of utilization shows: bars and cells, worked out beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portal.display.adding_up import hours_column
from portal.display.format import class_number
from portal.reports import words
from portal.reports.figures import utilization as figures
from portal.reports.usage import Usage
from portal.reports.utilization import UtilizationReport
from portal.reports.work import WorkRow
from portal.web.reports.pages import ROWS, Meter, part_of


def utilization_page(
    report: UtilizationReport, *, show_all: bool = False, **_: object
) -> dict[str, Any]:
    total = report.total
    *parts, sums = _class_amounts(report)
    return {
        "range_note": words.range_note(report.filters, report.until),
        "total": total,
        "capacity_name": "Ready GPU-hours" if report.against == "ready" else "Nominal GPU-hours",
        "figure": figures.allocated_by_class(report),
        "step_label": _step_label(report.step_s),
        "class_rows": [
            (row, class_number(row.position), _class_meter(row.position, row.usage), amounts)
            for row, amounts in zip(report.classes, parts, strict=True)
        ],
        "sums": sums,
        "queue_rows": _queue_meters(report)[: None if show_all else ROWS],
        "chart_rows": _chart_rows(report),
        "user_rows": _work_meters(report.work.users)[: None if show_all else ROWS],
        "type_rows": _work_meters(report.work.types),
        "work": report.work,
    }


MEASURED = ("used", "idle", "unmeasured")
AMOUNTS = ("capacity", "allocated", "known", *MEASURED, "free", "lost")


def _class_amounts(report: UtilizationReport) -> list[dict[str, str]]:
    """GPU-hours of each class and of all, as they are shown: they add up."""
    shown: list[dict[str, str]] = [{} for _ in (*report.classes, None)]
    for name in AMOUNTS:
        amounts_of = [_if_measured(row.usage, name) for row in report.classes]
        column = hours_column(amounts_of, sum(amount or 0.0 for amount in amounts_of))
        for amounts, text in zip(shown, [*column.parts, column.total], strict=True):
            amounts[name] = text
    return shown


def _if_measured(usage: Usage, name: str) -> float | None:
    if name in MEASURED and not usage.is_measured:
        return None
    amount: float = getattr(usage, name)
    return amount


def _step_label(step_s: int) -> str:
    """'6-hour means'."""
    for unit_s, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if step_s % unit_s == 0:
            count = step_s // unit_s
            return f"{count}-{name} means" if count > 1 else f"{name} means"
    return f"{step_s}-second means"


def _class_meter(position: int, usage: Any) -> Meter:
    colour = class_number(position)
    if usage.is_measured:
        return Meter(
            part_of(usage.used, usage.capacity), part_of(usage.known, usage.capacity), colour=colour
        )
    return Meter(part_of(usage.known, usage.capacity), colour=colour)


def _queue_meters(report: UtilizationReport) -> list[tuple[Any, Meter]]:
    """One axis for all rows; the tick is the nominal quota."""
    longest = max((max(q.usage.known, q.usage.capacity) for q in report.queues), default=0.0)
    meters = []
    for row in report.queues:
        usage = row.usage
        full = usage.used if usage.is_measured else usage.known
        mark = part_of(usage.capacity, longest) if usage.capacity else None
        meters.append((row, Meter(part_of(full, longest), part_of(usage.known, longest), mark)))
    return meters


def _work_meters(rows: Sequence[WorkRow]) -> list[tuple[WorkRow, Meter]]:
    """Held pale, really used full, as a part of the longest."""
    longest = max((row.gpu_hours for row in rows), default=0.0)
    found = []
    for row in rows:
        whole = part_of(row.gpu_hours, longest)
        used = whole if row.used_share is None else whole * row.used_share
        found.append((row, Meter(round(used, 2), whole)))
    return found


def _chart_rows(report: UtilizationReport) -> list[tuple[Any, ...]]:
    """(start, GPUs of each class, all, capacity, really used) of the table beside the chart."""
    rows = []
    for i, start in enumerate(report.starts):
        each = [line.allocated[i] for line in report.series]
        capacity = sum(line.capacity[i] for line in report.series)
        used = sum(line.used[i] for line in report.series)
        rows.append((start, each, sum(each), capacity, used))
    return rows
