"""`manage.py doctor`: what is wrong with this installation, on one screen."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from scheduling.management.database import DatabaseCommand

MARKS = {"good": "ok  ", "advice": "note", "missing": "LACK"}


class Command(DatabaseCommand):
    help = "Say what is wrong with this installation and what to do; fails when something is."

    def handle(self, *args: Any, **options: Any) -> None:
        from portal.config.doctoring import examined

        found = examined()
        for item in found:
            self.say(f"{MARKS[item.grade]}  {item.topic}: {item.sentence}")
            if item.remedy and item.grade != "good":
                self.say(f"      → {item.remedy}")
        wrong = sum(item.grade == "missing" for item in found)
        if wrong:
            raise CommandError(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong.")
        self.say("Nothing is wrong.")
