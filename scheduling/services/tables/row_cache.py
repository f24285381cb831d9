"""Rows that seldom change, as objects that are made anew only when one of them did.

A thousand queues take a few milliseconds to read as the database returns them, and ten times that as
objects. Comparing what is read needs nobody to say that it changed, however that was done.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from django.db import connections
from django.db.models import DateTimeField, Expression, QuerySet

T = TypeVar("T")


class Moment(Expression):
    """The time a statement is run for, as a query's filters take it: a query with it is put into SQL once."""

    output_field = DateTimeField()

    def __init__(self, later: timedelta = timedelta()) -> None:
        super().__init__()
        self.later = later

    def __sub__(self, span: Any) -> Any:
        return Moment(self.later - span)

    def as_sql(self, *_: Any) -> tuple[str, Any]:
        return "%s", (self,)


@dataclass(frozen=True, slots=True)
class Statement:
    """A query in SQL; each Moment among its ``params`` becomes a time when it is run."""

    database: str
    sql: str
    params: tuple[Any, ...]

    @classmethod
    def of(cls, query: QuerySet[Any, Any]) -> Statement:
        sql, params = query.query.sql_with_params()
        return cls(query.db, sql, tuple(params))

    def run(self, at: datetime | None = None) -> list[Any]:
        """Its rows as the database returns them. A statement with a Moment needs ``at``."""
        connection = connections[self.database]
        adapt = connection.ops.adapt_datetimefield_value
        params = [adapt(at + p.later) if at and isinstance(p, Moment) else p for p in self.params]
        with connection.cursor() as cursor:
            cursor.execute(self.sql, params)
            return list(cursor.fetchall())


class RowCache:
    """The objects of some queries, from one reading to the next. Nobody may change them."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[list[Any], tuple[Any, ...]]] = {}
        self._made: dict[str, tuple[object, Any]] = {}
        self._statements: dict[tuple[str, Hashable], Statement] = {}

    def once(self, name: str, of: object, make: Callable[[], T]) -> T:
        """What ``make`` gave by that ``name`` of an equal ``of`` (of plain values: rows of a model are equal
        whatever they say), or gives now."""
        before = self._made.get(name)
        if before is None or before[0] != of:
            before = self._made[name] = of, make()
        return cast("T", before[1])

    def steady(
        self, name: str, of: Hashable, make: Callable[[], QuerySet[Any, T]]
    ) -> tuple[T, ...]:
        """All rows of the query that ``make`` makes, always the same about ``of``: the very objects of the
        last call by that ``name`` if none of them changed.

        It is put into SQL once, which takes longer than to read a few rows by it. A row written between the
        two readings here is found by the next call.
        """
        rows = self._statement(name, of, make).run()
        return self._refresh(name, rows, make)

    def steady_at(
        self, name: str, of: Hashable, at: datetime, make: Callable[[Any], QuerySet[Any, T]]
    ) -> tuple[T, ...]:
        """The same of a query that ``make`` makes for the time ``at``, which differs from call to call."""
        rows = self._statement(name, of, lambda: make(Moment())).run(at)
        return self._refresh(name, rows, lambda: make(at))

    def _statement(
        self, name: str, of: Hashable, make: Callable[[], QuerySet[Any, Any]]
    ) -> Statement:
        if (name, of) not in self._statements:
            self._statements[name, of] = Statement.of(make())
        return self._statements[name, of]

    def _refresh(
        self, name: str, seen: list[Any], make: Callable[[], QuerySet[Any, T]]
    ) -> tuple[T, ...]:
        before = self._objects.get(name)
        if before is None or before[0] != seen:
            before = self._objects[name] = seen, tuple(make())
        return before[1]
