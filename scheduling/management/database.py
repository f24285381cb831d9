"""Commands that read Weir's database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.db.utils import OperationalError, ProgrammingError

from scheduling.management.command import WeirCommand


class DatabaseCommand(WeirCommand):
    """Says what to do where the database does not answer or has no tables yet."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Raises CommandError for that."""
        try:
            return super().execute(*args, **options)
        except (OperationalError, ProgrammingError) as error:
            raise CommandError(
                f"The database cannot be read: {str(error).strip()}. Check DATABASE_URL; if the database is"
                " new, run 'manage.py migrate'."
            ) from error
