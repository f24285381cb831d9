"""manage.py plan FILE: what the engine would do with a snapshot. Touches nothing."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandParser

from scheduling.engine import document
from scheduling.management.command import FileCommand
from scheduling.management.reading import read_snapshot

Json = dict[str, Any]


class Command(FileCommand):
    help = "Print what the engine would do with a snapshot file (pure: touches nothing)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", nargs="?", help="snapshot, '-' reads stdin")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--schema", action="store_true", help="print the file's JSON Schema")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["schema"]:
            self.stdout.write(json.dumps(document.schema(), indent=2))
            return
        if options["file"] is None:
            self.refuse(["FILE: found nothing, expected a snapshot file or '-'; name one"])
        snapshot = read_snapshot(self, options["file"])
        # What is refused does not load it, and a small file no machine code.
        from scheduling.engine import plan
        from scheduling.services.explain.documents import plan_document

        made = plan_document(plan(snapshot))
        if options["json"]:
            self.stdout.write(json.dumps(made, indent=2))
            return
        self._print_shares(made["fair_share"])
        for decision in made["decisions"]:
            self.say(f"{decision['action']:8} {decision['workload']}: {decision['sentence']}")

    def _print_shares(self, shares: Json) -> None:
        head = ("queue", "class", "fair share", "potential", "allocated", "nominal", "pending")
        rows = [
            (
                queue + (" (oversubscribed)" if share["oversubscribed"] else ""),
                name,
                *(f"{share[column.replace(' ', '_')]:.3f}" for column in head[2:]),
            )
            for queue, by_class in shares.items()
            for name, share in by_class.items()
        ]
        widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
        for row in [head, *rows] if rows else []:
            left = "  ".join(f"{cell:<{w}}" for cell, w in zip(row[:2], widths[:2], strict=True))
            right = "  ".join(f"{cell:>{w}}" for cell, w in zip(row[2:], widths[2:], strict=True))
            self.say(f"{left}  {right}")
        if rows:
            self.say()
