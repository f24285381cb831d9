"""What of a report goes into a letter: the sentence above it, and a few lines of its main table."""

from __future__ import annotations

from typing import Any

from portal.display.csv import Table
from portal.reports.cells import as_text
from portal.reports.declaration import Letter
from portal.reports.filters import ReportFilters
from portal.reports.kinds import REPORTS
from portal.reports.words import range_label

LINES = 6


def lines_of(kind: str, report: Any, filters: ReportFilters) -> list[list[str]]:
    """[[word, sentence]] for a notice."""
    lines = [["Range", range_label(filters)]]
    if report.is_empty:
        return [*lines, ["In short", "There is nothing to report."]]
    lines.append(["In short", str(REPORTS[kind].finding(report))])
    letter = REPORTS[kind].letter
    table = next((table for table in report.tables() if table.name == letter.table), None)
    return [*lines, *(_rows(table, letter, filters) if table else [])]


def _rows(table: Table, letter: Letter, filters: ReportFilters) -> list[list[str]]:
    at = {name: i for i, name in enumerate(table.columns)}
    wanted = [
        (at[name], name, words)
        for names, words in letter.columns
        for name in [next((name for name in names.split("|") if name in at), "")]
        if name
    ]
    return [
        [
            str(row[at[letter.name]]),
            ", ".join(words.format(as_text(row[i], name, filters)) for i, name, words in wanted)
            + ".",
        ]
        for row in table.rows[:LINES]
    ]
