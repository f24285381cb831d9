"""`manage.py demo`: the whole of Weir by one command, over an embedded cluster."""

from __future__ import annotations

import os
import re
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management import call_command

from scheduling.files.arguments import LAST_PORT, whole
from scheduling.management.command import WeirCommand, refusal
from workshop.arguments import MOST_NODES, day, factor
from workshop.demo.cluster.paths import DemoFolder, ForeignFolderError

if TYPE_CHECKING:
    from workshop.demo.cluster.furnish import SimulatedCluster
    from workshop.demo.setting import Setting

PASSWORD = "weir"  # noqa: S105 - the demo's own, on loopback, printed at every start
MARK = "WEIR_DEMO_FOLDER"
VAR = Path(__file__).resolve().parents[3] / "var"


class Command(WeirCommand):
    help = "Serve the portal over a cluster, with the example organisation or a trace."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=whole(1, LAST_PORT), default=8000)
        parser.add_argument("--trace", type=Path, help="folder or file of a recorded trace")
        parser.add_argument(
            "--speed",
            type=factor,
            help="seconds of work per second (default 60, traces 600, on Kubernetes 10)",
        )
        parser.add_argument(
            "--cluster",
            default="embedded",
            help="embedded; real: Kubernetes on loopback; context:NAME of your kubeconfig",
        )
        parser.add_argument("--nodes", type=whole(1, MOST_NODES), help="traces: nodes of the pool")
        parser.add_argument(
            "--from",
            dest="day",
            type=day,
            help="traces: the day that is played first, as 2017-11-06 (default: their busiest week)",
        )
        parser.add_argument("--data", type=Path, help="folder of the demo's data (default in var/)")

    def move_in(self, argv: list[str]) -> None:
        """Before settings are read, which name the database: theirs are those of the demo's folder."""
        self._called_from_command_line = True  # a wrong argument is refused in one line
        options = vars(self.create_parser(*argv[:2]).parse_args(argv[2:]))
        folder = _folder(options)
        os.environ.update(folder.environment(), **at_home(options["port"]))
        os.environ[MARK] = str(folder.path)

    def handle(self, *args: Any, **options: Any) -> None:
        # As Ctrl-C: what was started is ended on the way out.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        folder = _folder(options)
        if os.environ.get(MARK) != str(folder.path):
            raise refusal("the demo has a database of its own: start it as `manage.py demo`")
        try:
            folder.open()
        except (ForeignFolderError, OSError) as error:
            raise refusal(str(error)) from None
        self._say(f"Weir's demo, in {folder.path}")
        names = ("port", "trace", "speed", "nodes", "cluster", "day")
        from portal.config.together import run_together
        from workshop.demo import later

        status = run_together(
            lambda ready: self._serve(folder, ready, **{name: options[name] for name in names}),
            is_vital=True,
            more=[later.part(folder.path, folder.broker)],
        )
        if status:
            sys.exit(status)

    def _serve(
        self,
        folder: DemoFolder,
        ready: Callable[[], None],
        *,
        port: int,
        trace: Path | None,
        speed: float | None,
        nodes: int | None,
        cluster: str,
        day: date | None,
    ) -> None:
        """Imports come late: models are there once settings are."""
        from scheduling.services.worker.children import aside
        from workshop.demo import runner, setting, ways
        from workshop.demo.cluster.venue import Venue

        try:
            venue = Venue.parse(cluster)
            listener = runner.listen(port)
            stage = (
                setting.trace(venue, trace, nodes, day) if trace else setting.organisation(venue)
            )
        except (runner.PortTakenError, ValueError) as error:
            self.refuse(str(error).splitlines())
        speed = speed or venue.speed(trace=trace is not None)

        if venue.is_embedded and not folder.is_seeded:
            aside("beginning", lambda: self._begin(stage, folder, speed))
        else:
            self._make_database(folder)
        played = self._open(stage, folder, speed)
        try:
            arrivals = stage.fill(played, folder, PASSWORD, self._say)
            ways.open_ways()
            announce = partial(self._announce, port, played.kubectl, ready)
            runner.serve(listener, played, arrivals, folder.position, announce)
        finally:
            played.stop()
            self._say("Stopped. A second start goes on from here.")

    def _make_database(self, folder: DemoFolder) -> None:
        if not folder.is_seeded:
            self._say("Making the database")
        call_command("migrate", verbosity=0, interactive=False)

    def _open(self, stage: Setting, folder: DemoFolder, speed: float) -> SimulatedCluster:
        """The running cluster; the caller stops it."""
        from scheduling.services.errors import ServiceError

        try:
            return stage.open(folder, speed, self._say)
        except ServiceError as error:
            raise refusal(str(error)) from None

    def _begin(self, stage: Setting, folder: DemoFolder, speed: float) -> None:
        """A first start up to where the cluster has its past, all of which a second start finds."""
        self._make_database(folder)
        played = self._open(stage, folder, speed)
        try:
            stage.fill(played, folder, PASSWORD, self._say)
        finally:
            played.stop()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _announce(self, port: int, kubectl: str, ready: Callable[[], None]) -> None:
        from workshop.demo import running, terminal

        ready()
        running.note(os.environ)
        address = f"http://127.0.0.1:{port}"
        self._say(
            f"\nWeir is at {address}/\n"
            f"Sign in as researcher, lead or admin; password {PASSWORD}. Ctrl-C stops it.\n"
            f"In a terminal, as {terminal.USER}: {terminal.sign_in(address)}\n"
            f"Its cluster: kubectl {kubectl} get jobs -A\n"
        )


def at_home(port: int) -> dict[str, str]:
    """Where links lead, and that its webhooks may come back to the demo itself, which is on loopback."""
    host = f"127.0.0.1:{port}"
    return {"WEIR_ADDRESS": f"http://{host}", "WEIR_WEBHOOK_INSIDE": host, "WEIR_WEBHOOK_HTTP": "1"}


def _folder(options: Mapping[str, Any]) -> DemoFolder:
    named = options["data"]
    return DemoFolder(
        named or _default_folder(options["trace"], options["cluster"], options["day"])
    )


def _default_folder(trace: Path | None, cluster: str, day: date | None = None) -> Path:
    """One for each trace, first day and cluster: their data would not go together."""
    parts = ["demo", trace.resolve().name if trace else "", cluster.removeprefix("embedded")]
    parts.append(str(day) if trace and day else "")
    names = (re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in parts)
    return VAR / "-".join(filter(None, names))
