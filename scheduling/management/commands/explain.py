"""manage.py explain FILE WORKLOAD: why it waits, and what would start it. Touches nothing."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandParser

from scheduling.management.command import FileCommand
from scheduling.management.reading import read_snapshot
from scheduling.services.errors import ServiceError

Json = dict[str, Any]


class Command(FileCommand):
    help = "Say why a workload of a snapshot file waits, runs or is evicted, by the numbers."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="snapshot, '-' reads stdin")
        parser.add_argument("workload", metavar="WORKLOAD", help="its name in the file")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        snapshot = read_snapshot(self, options["file"])
        from scheduling.services.explain.documents import (
            explain,  # a small file needs no machine code
        )

        try:
            answer = explain(snapshot, options["workload"])
        except ServiceError:
            name = options["workload"]
            known = ", ".join(repr(w.name) for w in snapshot.workloads[:5]) or "none"
            self.refuse(
                [f"WORKLOAD: found {name!r}, expected the name of one of workloads: {known}"]
            )
        if options["json"]:
            self.stdout.write(json.dumps(answer, indent=2))
            return
        self._print(answer)

    def _print(self, answer: Json) -> None:
        if not answer["decisions"]:
            self.say(f"{answer['workload']} is {answer['state']}; the plan leaves it alone.")
        for decision in answer["decisions"]:
            self.say(f"{answer['workload']}: {decision['action']} ({decision['reason']})")
            self.say(f"  {decision['sentence']}")
            if decision.get("until"):
                self.say(f"  until: {decision['until']}")
            if decision.get("position"):
                self.say(f"  position: {decision['position']} in {answer['queue']}")
            for name, value in decision.get("numbers", {}).items():
                self.say(f"  {name}: {value}")
        for gpu_class, share in answer["queue_shares"].items():
            numbers = ", ".join(filter(None, (_figure(*each) for each in share.items())))
            self.say(f"{answer['queue']}, {gpu_class}: {numbers}")
        for found in answer["would_start"]:
            self.say(f"would start it: {found['sentence']}")


def _figure(name: str, value: float | bool | None) -> str:
    """``value`` of a share with its name; nothing for what is not so."""
    words = name.replace("_", " ")
    if isinstance(value, bool):
        return words if value else ""
    return f"no {words}" if value is None else f"{words} {value:g}"
