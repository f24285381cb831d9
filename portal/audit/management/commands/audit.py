"""`manage.py audit verify`: whether anything of the audit log is missing or changed."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import connection

from portal.audit.chain import verify
from portal.audit.guard import is_guarded
from scheduling.management.command import refusal
from scheduling.management.database import DatabaseCommand

DIGEST = re.compile(r"[0-9a-f]{64}")


class Command(DatabaseCommand):
    help = "Verify the chain of the audit log; ends with 1 where it is broken."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("verb", choices=["verify"])
        parser.add_argument("--expect", default="", help="a digest that was noted before")

    def handle(self, *args: Any, **options: Any) -> None:
        expected = options["expect"].strip().lower()
        if expected and not DIGEST.fullmatch(expected):
            raise refusal("--expect: a digest has 64 hexadecimal digits; copy it whole")
        found = verify(expected)
        if not found.whole:
            raise CommandError(f"{found.fault} {found.entries:,} entries were read.")
        self.say(f"{found.entries:,} entries, none missing, none changed.")
        self.say(f"Last digest: {found.last}")
        if not is_guarded(connection):
            raise CommandError(
                "The triggers that refuse changes are gone from the database. Make them again:"
                " manage.py migrate audit 0001 && manage.py migrate audit"
            )
        self.say("The database refuses to change or delete them.")
