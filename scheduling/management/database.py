"""Commands that read Weir's database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.db import connection
from django.db.utils import OperationalError, ProgrammingError

from scheduling.management.command import WeirCommand


class DatabaseCommand(WeirCommand):
    """Says what to do where the database does not answer or has no tables yet.

    It checks no settings, which would load every page; `manage.py check` and a start of the portal do.
    """

    requires_system_checks: list[str] = []

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Raises CommandError for that."""
        try:
            return super().execute(*args, **options)
        except (OperationalError, ProgrammingError) as error:
            raise CommandError(_remedy(str(error).strip())) from error


def _remedy(fault: str) -> str:
    where = connection.settings_dict["NAME"]
    return (
        f"The database {where} cannot be read: {fault}. Start 'make demo' or 'make serve' first, or name"
        " another by DATABASE_URL; if it is new, run 'manage.py migrate'. 'manage.py doctor' looks at the"
        " rest."
    )
