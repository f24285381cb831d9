"""The page of a report that has no page of its own: its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from portal.display.csv import Cell, Table
from portal.reports.cells import head, is_number, said
from portal.reports.declared import Computed
from portal.reports.filters import ReportFilters

LINES = 10
"""Of a table, until all are asked for."""
NARROWS = {"queue": "queue", "gpu_class": "class", "user": "user", "type": "type"}
"""Columns whose values a report can be narrowed to, and the filter."""
UID = "uid"
"""It is where the name of the workload leads."""


@dataclass(frozen=True, slots=True)
class ShownCell:
    head: str
    text: str
    is_number: bool
    link: str = ""


@dataclass(frozen=True)
class ShownTable:
    name: str
    title: str
    heads: tuple[ShownCell, ...]
    rows: tuple[tuple[ShownCell, ...], ...]
    more: int
    """Rows in all, where some are left out."""


def tables_page(
    report: Computed, *, cluster: str, filters: ReportFilters, show_all: bool
) -> dict[str, Any]:
    shown = [_shown(table, cluster, filters, show_all) for table in report.tables() if table.rows]
    return {"shown": shown}


def _shown(table: Table, cluster: str, filters: ReportFilters, show_all: bool) -> ShownTable:
    rows = table.rows if show_all else table.rows[:LINES]
    columns = list(zip(table.columns, zip(*table.rows, strict=True), strict=True))
    numeric = {name for name, cells in columns if any(map(is_number, cells))}
    hidden = {UID, *(name for name, cells in columns if all(cell is None for cell in cells))}
    return ShownTable(
        table.name,
        table.title,
        tuple(ShownCell("", head(n), n in numeric) for n in table.columns if n not in hidden),
        tuple(
            _row(dict(zip(table.columns, row, strict=True)), numeric, hidden, cluster, filters)
            for row in rows
        ),
        len(table.rows) if len(rows) < len(table.rows) else 0,
    )


def _row(
    cells: dict[str, Cell],
    numeric: set[str],
    hidden: set[str],
    cluster: str,
    filters: ReportFilters,
) -> tuple[ShownCell, ...]:
    return tuple(
        ShownCell(
            head(name), said(cell, name, filters), name in numeric,
            _link(name, cell, cells, cluster, filters),
        )
        for name, cell in cells.items()
        if name not in hidden
    )  # fmt: skip


def _link(
    name: str, cell: Cell, cells: dict[str, Cell], cluster: str, filters: ReportFilters
) -> str:
    if name == "workload" and cells.get(UID):
        return reverse("web:workload", args=[cluster, cells[UID]])
    if name in NARROWS and cell:
        return f"?{filters.query(**{NARROWS[name]: str(cell).rpartition('/')[2]})}"
    return ""
