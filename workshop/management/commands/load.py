"""`manage.py load`: a crowd with personas at the portal of a large organisation."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management import CommandError

from scheduling.files.arguments import whole
from scheduling.management.command import WeirCommand
from workshop.arguments import factor
from workshop.benches.worker.large import NoPortalError
from workshop.benches.worker.load import NoLocustError, run_load
from workshop.testbed.parts import PartsError


class Command(WeirCommand):
    help = "People with personas at a large organisation's portal on PostgreSQL: errors, times, memory."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--people", type=whole(25, 5000), default=500)
        parser.add_argument("--minutes", type=factor, default=10.0)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = run_load(options["people"], options["minutes"], self.stderr.write)
        except (NoLocustError, NoPortalError, PartsError) as refused:
            raise CommandError(str(refused)) from None
        self.stdout.write(json.dumps({"measured": found.measured, "notes": found.notes}, indent=2))
