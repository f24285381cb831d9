"""What a report is made of: page, tab, CSV, JSON, API, letter and `weir report` come from one declaration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from portal.accounts.models import User
from portal.display.csv import Table
from portal.reports.filters import ReportFilters
from scheduling.models import Cluster


class ReportContent(Protocol):
    """What every report has: its tables, of which the first is the main one, and all of it as JSON."""

    @property
    def is_empty(self) -> bool: ...
    def tables(self) -> tuple[Table, ...]: ...
    def as_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Finding:
    """The sentence above a report: ``bold`` answers, ``rest`` explains."""

    bold: str
    rest: str = ""

    def __str__(self) -> str:
        return f"{self.bold} {self.rest}".strip()


@dataclass(frozen=True, slots=True)
class Letter:
    """What a letter has of one table: of each row its ``name``, then these columns."""

    table: str
    name: str
    columns: tuple[tuple[str, str], ...]
    """(column, words around it); of several names parted by | the one that the table has."""


@dataclass(frozen=True)
class Report:
    """``compute`` raises Http404 where the person has no queue in the cluster, ValidationError at a faulty
    filter; ``finding`` reads a report that is not empty."""

    name: str
    """Its address."""
    title: str
    about: str
    """One sentence, for the API document and the command line."""
    compute: Callable[[Cluster, ReportFilters, User], Any]
    finding: Callable[[Any], Finding]
    letter: Letter
    compares: bool = False
    """Whether it holds the range against the one before."""


def exported(computed: object, name: str) -> Table | None:
    """The table for other programs that a report makes under ``name``, if it has one."""
    make = getattr(computed, "exports", {}).get(name)
    return make() if make else None
