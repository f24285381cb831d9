"""Heads of a table that sort it. They are links, so a sorted page has an address and needs no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.http import QueryDict

PARAMETER = "sort"


@dataclass(frozen=True, slots=True)
class Column:
    """``key`` stands in the address, empty where the column sorts nothing. ``falls``: its first order is the
    largest first."""

    label: str
    key: str = ""
    number: bool = False
    falls: bool = False


@dataclass(frozen=True, slots=True)
class Sort:
    """An order by one column."""

    key: str
    falls: bool = False

    @classmethod
    def of(cls, text: str, columns: Iterable[Column], default: Sort) -> Sort:
        """What ``text`` ('name', '-gpus') asks for; the default where no column has that key."""
        key, falls = text.removeprefix("-"), text.startswith("-")
        return cls(key, falls) if key in {c.key for c in columns if c.key} else default

    def __str__(self) -> str:
        return f"-{self.key}" if self.falls else self.key


@dataclass(frozen=True, slots=True)
class Head:
    """``aria`` as in ``aria-sort``; empty where the column sorts nothing."""

    label: str
    number: bool
    query: str
    aria: str


def heads(columns: Sequence[Column], chosen: Sort, query: QueryDict) -> list[Head]:
    """The row of heads: each link keeps what else the address asks for and begins at the first page."""
    return [_head(column, chosen, query) for column in columns]


def _head(column: Column, chosen: Sort, query: QueryDict) -> Head:
    if not column.key:
        return Head(column.label, column.number, "", "")
    is_chosen = column.key == chosen.key
    link = query.copy()
    link.pop("page", None)
    link[PARAMETER] = str(Sort(column.key, not chosen.falls if is_chosen else column.falls))
    order = "descending" if chosen.falls else "ascending"
    return Head(column.label, column.number, link.urlencode(), order if is_chosen else "none")
