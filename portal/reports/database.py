"""What reports ask of the database beyond Django's own functions."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import FloatField, Func
from django.db.models.sql.compiler import SQLCompiler


class Epoch(Func):
    """Seconds since 1970 of an instant, as a float (to a tenth of a millisecond).

    Ten times cheaper than a datetime object a row where only differences are wanted.
    """

    function = "EXTRACT"
    template = "%(function)s(EPOCH FROM %(expressions)s)::float"
    output_field = FloatField()

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        template = "((JULIANDAY(%(expressions)s) - 2440587.5) * 86400.0)"
        return self.as_sql(compiler, connection, template=template, **context)
