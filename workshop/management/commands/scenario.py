"""Draws the work that a scenario file describes, lives it through the engine, and prints how it fared."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from scheduling.engine.reasons.wording import span
from scheduling.files import BrokenFileError, Fault, lines_of, read, read_text
from scheduling.files.arguments import whole
from scheduling.management.command import MOST_FAULTS, FileCommand
from workshop.scenario.document import Scenario, ScenarioError, parse
from workshop.scenario.outcome import QueueOutcome, TooMuchWorkError, play

MOST_DAYS = 366
HEAD = (
    "queue",
    "priority",
    "workloads",
    "not started",
    "average wait",
    "p99 wait",
    "GPU-hours",
    "evicted",
)
ROW = "{:20} {:16} {:>10} {:>12} {:>13} {:>11} {:>11} {:>8} {:>8}"


class Command(FileCommand):
    help = (
        "Lives a scenario file: drawn work of teams, elastic gangs, services that follow the hour."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="scenario, '-' reads standard input")
        parser.add_argument("--days", type=whole(1, MOST_DAYS), default=7)
        parser.add_argument("--seed", type=whole(0, 1_000_000_000), default=0)
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rows = play(self.read(options["file"]), options["days"], options["seed"])
        except TooMuchWorkError as error:
            self.refuse([f"{options['file']}: {error}"])
        if options["as_json"]:
            about = {"days": options["days"], "seed": options["seed"]}
            document = about | {"work": [asdict(row) for row in rows]}
            self.stdout.write(json.dumps(document, indent=2))
            return
        self.say(ROW.format(*HEAD, "resized"))
        for row in rows:
            self.say(line_of(row))

    def read(self, name: str) -> Scenario:
        """Broken input ends the process with code 2 and one line per fault."""
        try:
            text = read_text(name)
            return parse(read(text, name))
        except BrokenFileError as error:
            self.refuse(map(str, error.faults))
        except ScenarioError as error:
            at = lines_of(text, [fault.path for fault in error.faults[:MOST_FAULTS]])
            self.refuse(
                str(Fault(name, at.get(path, 0), path, *rest)) for path, *rest in error.faults
            )


def line_of(row: QueueOutcome) -> str:
    return ROW.format(
        row.queue,
        row.priority_class,
        f"{row.workloads:,}",
        f"{row.not_started:,}",
        span(row.avg_wait_s),
        span(row.p99_wait_s),
        f"{row.gpu_hours:,.0f}",
        f"{row.evictions:,}",
        f"{row.resized:,}",
    )
