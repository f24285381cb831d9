"""`manage.py demo_later`: what a demo works out of its past once its first page is there; started by it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.conf import settings

from scheduling.management.command import WeirCommand

LOWEST = 19


class Command(WeirCommand):
    help = "Work out what a demo has put off until its first page was there (started by `demo`)."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        from workshop.demo.later import work_off

        os.nice(LOWEST)
        if not settings.WEIR_DEMO_FOLDER:
            self.refuse(["No demo's folder is named: `manage.py demo` starts this by itself."])
        work_off(Path(settings.WEIR_DEMO_FOLDER))
