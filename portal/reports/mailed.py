"""What of a report goes into a letter: the sentence above it, and a few lines of its main table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portal.display.csv import Cell, Table
from portal.display.format import NONE, duration, hours, number, percent
from portal.reports.filters import ReportFilters
from portal.reports.kinds import KINDS
from portal.reports.words import range_label

LINES = 6


@dataclass(frozen=True, slots=True)
class Mailed:
    """Columns of ``table`` that are told of each row, after the one that names it."""

    table: str
    name: str
    columns: tuple[tuple[str, str], ...]
    """(column, words around it); of several names parted by | the one that the table has."""


MAILED: Mapping[str, Mailed] = {
    "utilization": Mailed("classes", "gpu_class", (
        ("allocated_share_of_ready|allocated_share_of_nominal", "{} allocated"),
        ("really_used_share_of_allocated", "{} of it really used"),
    )),
    "use": Mailed("idle_now", "workload", (("gpus", "{} GPUs idle"), ("user", "of {}"))),
    "waits": Mailed("classes", "gpu_class", (("p50_s", "P50 {}"), ("p90_s", "P90 {}"))),
    "longest": Mailed("causes", "cause", (("hours", "{} h"), ("share", "{} of all waiting"))),
    "preemptions": Mailed("queues", "queue", (
        ("evictions", "{} evictions"), ("lost_gpu_hours", "{} GPU-hours lost"),
    )),
    "fairness": Mailed("entitled", "queue", (("received_share", "received {} of what it was entitled to"),)),
    "fragmentation": Mailed("now", "gpu_class", (
        ("free_gpus", "{} free"), ("fragmented_gpus", "{} of them fragmented"),
    )),
    "showback": Mailed("classes", "gpu_class", (("gpu_hours", "{} GPU-hours"),)),
    "forecast": Mailed("classes", "gpu_class", (
        ("hours_above_of_next_168", "{} of the next 168 hours above what there is"),
    )),
}  # fmt: skip


def lines_of(kind: str, report: Any, filters: ReportFilters) -> list[list[str]]:
    """[[word, sentence]] for a notice."""
    lines = [["Range", range_label(filters)]]
    if report.is_empty:
        return [*lines, ["In short", "There is nothing to report."]]
    lines.append(["In short", str(KINDS[kind].finding(report))])
    mailed = MAILED[kind]
    table = next((table for table in report.tables() if table.name == mailed.table), None)
    return [*lines, *(_rows(table, mailed) if table else [])]


def _rows(table: Table, mailed: Mailed) -> list[list[str]]:
    at = {name: i for i, name in enumerate(table.columns)}
    wanted = [
        (at[name], name, words)
        for names, words in mailed.columns
        for name in [next((name for name in names.split("|") if name in at), "")]
        if name
    ]
    return [
        [
            str(row[at[mailed.name]]),
            ", ".join(words.format(_told(row[i], name)) for i, name, words in wanted) + ".",
        ]
        for row in table.rows[:LINES]
    ]


def _told(cell: Cell, column: str) -> str:
    if cell is None:
        return NONE
    if isinstance(cell, int | float):
        if "share" in column:
            return percent(cell)
        if column.endswith("_s"):
            return duration(cell)
        return hours(cell) if column.endswith("hours") else number(cell, 1)
    return str(cell)
