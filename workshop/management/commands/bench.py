"""Runs one benchmark and prints its report."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

from scheduling.files.arguments import whole
from scheduling.management.command import WeirCommand
from scheduling.simulation.traces import TraceError
from workshop.benches.engine.registry import BENCHES, run
from workshop.benches.worker.large import NoPortalError
from workshop.benches.worker.overview import NoDemoError
from workshop.benches.worker.registry import SERVICE_BENCHES
from workshop.benches.worker.resting import DEMO, MINUTES, bench_demo
from workshop.testbed.control_plane.binaries import NoBinariesError
from workshop.testbed.control_plane.plane import NotReadyError
from workshop.testbed.control_plane.processes import ProcessDiedError
from workshop.testbed.parts import PartsError

REFUSED = (
    TraceError, NoBinariesError, NotReadyError, ProcessDiedError, NoDemoError, NoPortalError,
    PartsError,
)  # fmt: skip
ALL = {**BENCHES, **SERVICE_BENCHES}


class Command(WeirCommand):
    help = "Runs a benchmark: inputs' checksums, CPU seconds, and what was measured."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", choices=sorted(ALL), metavar="NAME")
        parser.add_argument("--traces", type=Path, default=settings.WEIR_TRACES, metavar="DIR")
        parser.add_argument(
            "--minutes", type=whole(1, 600), default=MINUTES, help="how long `demo` is looked at"
        )
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            name = options["name"]
            bench = partial(bench_demo, minutes=options["minutes"]) if name == DEMO else ALL[name]
            report = run(name, bench, options["traces"], self.note)
        except REFUSED as error:
            self.refuse(str(error).splitlines())
        if options["as_json"]:
            self.stdout.write(json.dumps(report, indent=2))
            return
        for line in table(report).splitlines():
            self.say(line)


def table(report: dict[str, Any]) -> str:
    width = max(len(name) for name in report["measured"])
    lines = [f"{report['bench']} on {report['machine']['cpu']}"]
    lines += [f"  {name:<{width}} {value:>16,.2f}" for name, value in report["measured"].items()]
    lines.append(f"{report['cpu_s']} CPU-s, {report['wall_s']} s, {report['peak_mib']} MiB")
    return "\n".join([*lines, *report["notes"]])
