"""Conditions on a thousand ids, which a list of as many parameters makes dear to write, send and read."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection
from django.db.models import BooleanField, F, Func, Q, Value


class _IsAnyOf(Func):
    """Whether a column is one of an array, which is one parameter. PostgreSQL alone has these."""

    template = "%(expressions)s::bigint[])"
    arg_joiner = " = ANY("
    output_field = BooleanField()


def among(column: str, ids: Iterable[int]) -> Q:
    """Condition on ``column``, a key: one of ``ids``."""
    known = list(ids)
    if connection.vendor == "postgresql":
        return Q(_IsAnyOf(F(column), Value(known)))
    return Q(**{f"{column}__in": known})
