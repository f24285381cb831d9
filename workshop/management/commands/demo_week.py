"""`manage.py demo_week`: the example organisation lived from an empty ledger, predictions judged by day."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management import call_command

from scheduling.files.arguments import whole
from scheduling.management.command import WeirCommand

MARK = "WEIR_DEMO_WEEK"
MOST_DAYS = 28


class Command(WeirCommand):
    help = (
        "Lives days of the example organisation in the simulator; how its predictions held, by day."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=whole(1, MOST_DAYS), default=7)
        parser.add_argument("--svg", type=Path, metavar="FILE", help="draw it there as well")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        if os.environ.get(MARK) is None:
            with tempfile.TemporaryDirectory(prefix="weir-week-") as folder:
                _again_in(folder)
            return
        from workshop.demo.week import lived
        from workshop.demo.week_drawing import svg

        call_command("migrate", verbosity=0, interactive=False)
        days = lived(options["days"], self.note)
        if options["svg"]:
            options["svg"].write_text(svg(days), encoding="utf-8")
        if options["as_json"]:
            self.stdout.write(json.dumps([asdict(day) for day in days], indent=2))
            return
        for line in table([asdict(day) for day in days]):
            self.say(line)


HEADS = {
    "day": "Day",
    "runs": "Runs ended",
    "held_pct": "in P10-P90, %",
    "error": "error, log2",
    "naive_error": "median of all",
    "starts": "Starts told",
    "before_p90_pct": "before P90, %",
    "in_band_pct": "in P50-P90, %",
    "start_error_pct": "error, %",
    "naive_start_error_pct": "naive, %",
}


def table(days: list[dict[str, Any]]) -> list[str]:
    """One line a day under one of heads."""
    rows = [list(HEADS.values())]
    rows += [[_text(name, day[name]) for name in HEADS] for day in days]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    return [
        "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}" if name.endswith("error") else f"{value:.1f}"
    return str(value)


def _again_in(folder: str) -> None:
    """The same in a process whose database is its own: settings name that before anything is read."""
    environment = {
        **os.environ,
        MARK: "1",
        "DATABASE_URL": f"sqlite:///{folder}/weir.sqlite3",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run([sys.executable, *sys.argv], env=environment, check=False)  # noqa: S603 - ourselves
    if done.returncode:
        sys.exit(done.returncode)
