"""How a cell of a report's table reads, by what the name of its column says: in letters and on pages."""

from __future__ import annotations

from datetime import datetime

from portal.display.csv import Cell
from portal.display.format import NONE, duration, hours, number, percent, when
from portal.reports.filters import ReportFilters

UNITS = {"gpu_hours": "GPU-hours", "gpus": "GPUs", "kwh": "kWh", "gpu": "GPU", "w": "W"}


def is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float)


def as_text(cell: Cell, column: str, filters: ReportFilters) -> str:
    """A share in percent, seconds as a duration, an instant in local time; other numbers to a tenth."""
    if cell is None:
        return NONE
    if isinstance(cell, datetime):
        return when(cell, filters.end, filters.zone)
    if not isinstance(cell, int | float):
        return str(cell)
    if "share" in column:
        return percent(cell)
    if column.endswith("_s"):
        return duration(cell)
    return hours(cell) if column.endswith("hours") else number(cell, 1)


def head(column: str) -> str:
    """'mean_w_per_gpu' -> 'Mean W per GPU'; the unit of a duration stands in its cells."""
    words = [UNITS.get(word, word) for word in _words(column.removesuffix("_s"))]
    return words[0][:1].upper() + words[0][1:] + "".join(f" {word}" for word in words[1:])


def _words(column: str) -> list[str]:
    before, found, after = column.partition("gpu_hours")
    if not found:
        return column.split("_")
    return [*before.strip("_").split("_"), found, *after.strip("_").split("_")]
