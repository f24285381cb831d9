# ruff: noqa: N999 - the name of the command
"""`manage.py first-admin`: what an installation needs before anybody signs in, and the link of the first."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError

from scheduling.management.command import WeirCommand


class Command(WeirCommand):
    help = "Print the link by which the first admin comes in, once, within a day; one before it is void."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._do()
        except DatabaseError as error:
            remedy = "python manage.py doctor says what it lacks."
            raise CommandError(
                f"The database cannot be read: {str(error).strip()}. {remedy}"
            ) from error

    def _do(self) -> None:
        from portal.setup.inviting import invite, needs_admin
        from portal.teams.shipped import ensure_personas, ensure_priority_classes

        ensure_priority_classes()
        ensure_personas()
        if not needs_admin():
            raise CommandError(
                "Somebody administers Weir already. They make others admins, on People."
            )
        address = settings.WEIR_ADDRESS or "http://127.0.0.1:8000"
        self.say(f"{address}/set-up/first/{invite()}/")
