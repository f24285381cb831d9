"""A report's numbers as plain tables: what stands beside each chart and what CSV and JSON carry."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Cell = str | int | float | datetime | None
DIGITS = 6


@dataclass(frozen=True)
class Table:
    """Columns carry their unit in their name, such as ``allocated_gpu_hours``."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]

    def as_dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, map(plain, row), strict=True)) for row in self.rows]


def plain(cell: Cell) -> str | int | float | None:
    """A value that JSON knows: instants as ISO 8601, fractions to six places."""
    if isinstance(cell, datetime):
        return cell.isoformat()
    return round(cell, DIGITS) if isinstance(cell, float) else cell


def csv_cell(cell: Cell) -> str:
    """Text that a spreadsheet takes as text: a leading formula sign is escaped, numbers are not."""
    value = plain(cell)
    if value is None:
        return ""
    text = str(value)
    if isinstance(value, str) and text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{text}"
    return text


class _Echo:
    """A file that hands each line straight back to whoever writes it."""

    def write(self, line: str) -> str:
        return line


def csv_lines(table: Table) -> Iterator[str]:
    """The lines of the file one by one, so that a large one is never held whole."""
    writer = csv.writer(_Echo())
    rows: Iterable[Sequence[Cell]] = (table.columns, *table.rows)
    for row in rows:
        yield writer.writerow([csv_cell(cell) for cell in row])
