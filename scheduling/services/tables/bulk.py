"""Writing many rows, one INSERT or UPDATE each in one go.

``bulk_update`` builds a CASE of every row for every column: half a second for a few hundred rows on
the hot path of a cycle. The same rows take milliseconds as a batch of prepared statements, with values
that are prepared by column and not by field and row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import (
    AutoField,
    BooleanField,
    CharField,
    DateTimeField,
    Field,
    FloatField,
    ForeignKey,
    IntegerField,
    JSONField,
    Model,
    TextField,
)

ROWS = 200
"""Rows of one INSERT: databases bound the parameters of a statement."""


def write_columns(rows: Sequence[Model], columns: Sequence[str]) -> None:
    """Write ``columns`` (field names) of ``rows``, saved rows of one model, in the caller's
    transaction. No signal is sent."""
    if not rows:
        return
    meta = rows[0]._meta
    known = {field.name: field for field in meta.concrete_fields}
    fields = [known[name] for name in columns]
    quote = connection.ops.quote_name
    assignments = ", ".join(f"{quote(str(field.column))} = %s" for field in fields)
    key = quote(str(meta.pk.column))
    sql = f"UPDATE {quote(meta.db_table)} SET {assignments} WHERE {key} = %s"  # noqa: S608 - names of columns
    with connection.cursor() as cursor:
        cursor.executemany(sql, list(_values(rows, [*fields, meta.pk])))


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert ``rows``, new rows of one model, in the caller's transaction. They stay without a key, and no
    signal is sent."""
    if not rows:
        return
    into, fields = _insertion(rows[0])
    with connection.cursor() as cursor:
        cursor.executemany(f"{into} VALUES {_marks(fields)}", list(_values(rows, fields)))


def insert_values(model: type[Model], names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """The same of rows that never were objects, which cost several times as much to make as to write:
    ``names`` are fields, what a row points at is given as the object, and all else has its default."""
    if not rows:
        return
    into, fields = _insertion(model)
    given = dict(zip(names, zip(*rows, strict=True), strict=True))
    columns = [
        _column(field, _keys(given[field.name]) if field.name in given else _defaults(field, rows))
        for field in fields
    ]
    with connection.cursor() as cursor:
        cursor.executemany(f"{into} VALUES {_marks(fields)}", list(zip(*columns, strict=True)))


def _keys(values: Sequence[Any]) -> list[Any]:
    return [value.pk if isinstance(value, Model) else value for value in values]


def _defaults(field: Field[Any, Any], rows: Sequence[object]) -> list[Any]:
    return [field.get_default()] * len(rows)


def insert_keyed(rows: Sequence[Model]) -> None:
    """The same, and each of ``rows`` gets its key: both databases return them in the order of the values,
    which Django counts on as well."""
    if not rows:
        return
    into, fields = _insertion(rows[0])
    key, marks = connection.ops.quote_name(str(rows[0]._meta.pk.column)), _marks(fields)
    with connection.cursor() as cursor:
        for start in range(0, len(rows), ROWS):
            some = rows[start : start + ROWS]
            values = [value for row in _values(some, fields) for value in row]
            every = ", ".join([marks] * len(some))
            cursor.execute(f"{into} VALUES {every} RETURNING {key}", values)
            for row, (pk,) in zip(some, cursor.fetchall(), strict=True):
                row.pk, row._state.adding, row._state.db = pk, False, connection.alias


def _insertion(row: Model | type[Model]) -> tuple[str, list[Field[Any, Any]]]:
    """The INSERT up to its values, and the fields it is for."""
    meta = row._meta
    fields = [field for field in meta.concrete_fields if not field.primary_key]
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(field.column)) for field in fields)
    return f"INSERT INTO {quote(meta.db_table)} ({columns})", fields


def _marks(fields: Sequence[object]) -> str:
    return f"({', '.join(['%s'] * len(fields))})"


def _values(rows: Sequence[Model], fields: Sequence[Field[Any, Any]]) -> Iterable[tuple[Any, ...]]:
    """What is written of each row, as the database takes it."""
    columns = (_column(field, [getattr(row, field.attname) for row in rows]) for field in fields)
    return zip(*columns, strict=True)


def _column(field: Field[Any, Any], values: list[Any]) -> list[Any]:
    kind = field.target_field if isinstance(field, ForeignKey) else field
    if isinstance(kind, (CharField, TextField, BooleanField)):
        return values
    if isinstance(kind, (IntegerField, AutoField)):
        return [v if v is None or type(v) is int else int(v) for v in values]
    if isinstance(kind, FloatField):
        return [v if v is None or type(v) is float else float(v) for v in values]
    if isinstance(kind, DateTimeField):
        # Most rows of a batch carry the same moment, or nothing.
        known = {value: _moment(field, value) for value in dict.fromkeys(values)}
        return [known[value] for value in values]
    if isinstance(kind, JSONField):
        empty = {of: _prepared(field, of()) for of in (dict, list)}
        return [empty[type(v)] if v in ({}, []) else _prepared(field, v) for v in values]
    return [_prepared(field, value) for value in values]


def _moment(field: Field[Any, Any], value: Any) -> Any:
    """Of an aware time: what a field does besides looks for times that are none."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return connection.ops.adapt_datetimefield_value(value)
    return _prepared(field, value)


def _prepared(field: Field[Any, Any], value: Any) -> Any:
    return field.get_db_prep_save(value, connection)
