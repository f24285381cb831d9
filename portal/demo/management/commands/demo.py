"""`manage.py demo`: the whole of Weir in one process, over an embedded cluster."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from portal.demo.paths import DemoFolder

PASSWORD = "weir"  # noqa: S105 - the demo's own, on loopback, printed at every start
MARK = "WEIR_DEMO_FOLDER"
DEFAULT_SPEED, TRACE_SPEED = 60.0, 600.0


class Command(BaseCommand):
    help = "Serve the portal over an embedded cluster, with the example organisation or a trace."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--trace", type=Path, help="folder or file of a recorded trace")
        parser.add_argument(
            "--speed",
            type=float,
            help=f"cluster seconds per second (default {DEFAULT_SPEED:g}, traces {TRACE_SPEED:g})",
        )
        parser.add_argument("--nodes", type=int, help="traces: nodes of the pool")
        parser.add_argument("--data", type=Path, help="folder of the demo's data (default in var/)")

    def handle(self, *args: Any, **options: Any) -> None:
        speed = options["speed"] or (TRACE_SPEED if options["trace"] else DEFAULT_SPEED)
        if speed <= 0:
            raise CommandError(f"--speed: {speed:g} is not above 0")
        folder = DemoFolder(options["data"] or _default_folder(options["trace"]))
        if os.environ.get(MARK) != str(folder.path):
            _start_again_in(folder)
        self._serve(folder, options["port"], options["trace"], speed, options["nodes"])

    def _serve(
        self, folder: DemoFolder, port: int, trace: Path | None, speed: float, nodes: int | None
    ) -> None:
        """Imports come late: the database's address is known only in the second process."""
        from portal.demo import runner, setting

        try:
            listener = runner.listen(port)
            stage = setting.trace(trace, nodes) if trace else setting.organisation()
        except (runner.PortTakenError, ValueError) as error:
            raise CommandError(str(error)) from None
        call_command("migrate", verbosity=0, interactive=False)
        embedded, arrivals = stage.set_up(folder, speed, PASSWORD, self._say)
        try:
            runner.serve(
                listener,
                embedded,
                arrivals,
                folder.position,
                lambda: self._announce(port, embedded.server.url),
            )
        finally:
            embedded.stop()
            self._say("Stopped. A second start goes on from here.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _announce(self, port: int, api_url: str) -> None:
        self._say(
            f"\nWeir is at http://127.0.0.1:{port}/\n"
            f"Sign in as researcher, lead or admin; password {PASSWORD}. Ctrl-C stops it.\n"
            f"Its cluster: kubectl --server {api_url} get jobs -A\n"
        )


def _default_folder(trace: Path | None) -> Path:
    if trace is None:
        return settings.VAR_DIR / "demo"
    name = re.sub(r"[^a-z0-9]+", "-", trace.resolve().name.lower()).strip("-")
    return settings.VAR_DIR / f"demo-{name}"


def _start_again_in(folder: DemoFolder) -> None:
    """Replace this process: settings name the database, and they were read already."""
    folder.open()
    environment = {**folder.environment(), MARK: str(folder.path)}
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)  # noqa: S606 - ourselves
