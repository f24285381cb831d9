"""Rows that many tests begin with: made once in a process, then laid down again as they were stored.

Making the example organisation takes three tenths of a second, most of it in the models; laying it down takes
a hundredth. What is laid down where depends on what is there: the same rows as before the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

from django.db import connection, transaction

Rows = dict[str, list[tuple[Any, ...]]]
_made: dict[Hashable, Rows] = {}


def laid_down(name: Hashable, make: Callable[[], object]) -> None:
    """Leave in the database what ``make`` leaves there. Other databases than SQLite number rows by
    sequences, which rows with numbers of their own would not move: there it is made each time."""
    if connection.vendor != "sqlite":
        make()
        return
    key = name, _counts()
    if key in _made:
        _lay_down(_made[key])
        return
    before = {table: set(rows) for table, rows in _rows().items()}
    make()
    after = _rows()
    new = {t: [row for row in rows if row not in before[t]] for t, rows in after.items()}
    _made[key] = {table: rows for table, rows in new.items() if rows}


@cache
def _columns() -> dict[str, list[str]]:
    """Table -> its columns."""
    with connection.cursor() as cursor:
        names = list(connection.introspection.table_names(cursor))
        found = {}
        for name in names:
            cursor.execute(f'PRAGMA table_info("{name}")')
            found[name] = [row[1] for row in cursor.fetchall()]
    return found


def _counts() -> tuple[Any, ...]:
    """How many rows there are of each table, and the last one's number."""
    each = [f'SELECT count(*), max(rowid) FROM "{table}"' for table in _columns()]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(each))
        return tuple(cursor.fetchall())


def _rows() -> Rows:
    """All there is, as it is stored: an expression has no type that the driver would convert."""
    found = {}
    with connection.cursor() as cursor:
        for table, columns in _columns().items():
            plain = ", ".join(f'+"{column}"' for column in columns)
            cursor.execute(f'SELECT {plain} FROM "{table}"')
            found[table] = cursor.fetchall()
    return found


def _lay_down(rows_of: Rows) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for table, rows in rows_of.items():
            names = ", ".join(f'"{column}"' for column in _columns()[table])
            places = ", ".join(["%s"] * len(rows[0]))
            cursor.executemany(
                f'INSERT OR REPLACE INTO "{table}" ({names}) VALUES ({places})', rows
            )
