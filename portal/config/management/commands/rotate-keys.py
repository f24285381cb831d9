# ruff: noqa: N999 - the name of the command
"""`manage.py rotate-keys`: what lies enciphered, written anew with the key of now."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from scheduling.management.database import DatabaseCommand


class Command(DatabaseCommand):
    help = "Write all that is enciphered anew with WEIR_SECRET_KEY, so that WEIR_SECRET_KEY_FALLBACKS can go."

    def handle(self, *args: Any, **options: Any) -> None:
        from portal.config.rotation import rotate

        done = rotate()
        for one in done:
            self.say(f"{one.what}: {one.written} written with the key of now")
            for name in one.lost:
                self.say(f"      {name}: can be read with no key that is known")
        lost = sum(len(one.lost) for one in done)
        if lost:
            raise CommandError(
                f"{lost} cannot be read. Name the key of then in WEIR_SECRET_KEY_FALLBACKS, or have them made"
                " anew: docs/operations/repair.md, Another key."
            )
        self.say("WEIR_SECRET_KEY_FALLBACKS can go once no session of before is to last.")
