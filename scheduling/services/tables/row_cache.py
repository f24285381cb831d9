"""Rows that seldom change, as objects that are made anew only when one of them did.

A thousand queues take a few milliseconds to read as the database returns them, and ten times that as
objects. Comparing what is read needs nobody to say that it changed, however that was done.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any, TypeVar, cast

from django.db import connections
from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)
V = TypeVar("V")


class RowCache:
    """The objects of some queries, from one reading to the next."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[list[Any], tuple[Any, ...]]] = {}
        self._moment: datetime | None = None
        self._made: Any = None
        self._statements: dict[tuple[str, Hashable], tuple[str, str, Any]] = {}

    def once_a(self, moment: datetime, make: Callable[[], V]) -> V:
        """What ``make`` gave at the same ``moment``, or gives now."""
        if moment != self._moment:
            self._moment, self._made = moment, make()
        return cast("V", self._made)

    def rows(self, name: str, query: QuerySet[M]) -> tuple[M, ...]:
        """All rows of ``query``: the very objects of the last call by that ``name`` if none of them changed.

        Nobody may change them. A row written between the two readings here is found by the next call.
        """
        return self._read(name, (query.db, *query.query.sql_with_params()), query.all)

    def steady(self, name: str, of: Hashable, make: Callable[[], QuerySet[M]]) -> tuple[M, ...]:
        """The same of a query that is always the one ``make`` makes about ``of``: it is put into SQL once,
        which takes longer than to read a few rows by it."""
        if (name, of) not in self._statements:
            query = make()
            self._statements[name, of] = (query.db, *query.query.sql_with_params())
        return self._read(name, self._statements[name, of], make)

    def _read(
        self, name: str, statement: tuple[str, str, Any], make: Callable[[], QuerySet[M]]
    ) -> tuple[M, ...]:
        database, sql, params = statement
        with connections[database].cursor() as cursor:
            cursor.execute(sql, params)
            seen = cursor.fetchall()
        before = self._objects.get(name)
        if before is not None and before[0] == seen:
            return before[1]
        rows = tuple(make())
        self._objects[name] = seen, rows
        return rows
