"""Runs one benchmark and prints its report."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from scheduling.cluster.real.binaries import NoBinariesError
from scheduling.cluster.real.control_plane import NotReadyError
from scheduling.cluster.real.processes import ProcessDiedError
from scheduling.services.benches.registry import CLUSTER_BENCHES
from scheduling.simulation.benches import BENCHES, run
from scheduling.simulation.traces import TraceError

ALL = {**BENCHES, **CLUSTER_BENCHES}


class Command(BaseCommand):
    help = "Runs a benchmark: inputs' checksums, CPU seconds, and what was measured."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", choices=sorted(ALL), metavar="NAME")
        parser.add_argument("--traces", type=Path, default=settings.WEIR_TRACES, metavar="DIR")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            name = options["name"]
            report = run(name, ALL[name], options["traces"], self.stderr.write)
        except (TraceError, NoBinariesError, NotReadyError, ProcessDiedError) as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from error
        self.stdout.write(json.dumps(report, indent=2) if options["as_json"] else table(report))


def table(report: dict[str, Any]) -> str:
    width = max(len(name) for name in report["measured"])
    lines = [f"{report['bench']} on {report['machine']['cpu']}"]
    lines += [f"  {name:<{width}} {value:>16,.2f}" for name, value in report["measured"].items()]
    lines.append(f"{report['cpu_s']} CPU-s, {report['wall_s']} s, {report['peak_mib']} MiB")
    return "\n".join([*lines, *report["notes"]])
