# ruff: noqa: N999 - the name of the command
"""`manage.py first-admin`: what an installation needs before anybody signs in, and the link of the first."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from scheduling.management.database import DatabaseCommand


class Command(DatabaseCommand):
    help = "Print the link by which the first admin comes in, once, within a day; one before it is void."

    def handle(self, *args: Any, **options: Any) -> None:
        from portal.setup.inviting import invite, needs_admin
        from portal.teams.shipped_personas import ensure_personas, ensure_priority_classes

        ensure_priority_classes()
        ensure_personas()
        if not needs_admin():
            raise CommandError(
                "Somebody administers Weir already. They make others admins, on People."
            )
        address = settings.WEIR_ADDRESS or "http://127.0.0.1:8000"
        self.say(f"{address}/set-up/first/{invite()}/")
