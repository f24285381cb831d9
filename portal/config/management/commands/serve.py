"""`manage.py serve`: the portal of an organisation, with its workers beside it."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser
from contextlib import suppress
from typing import Any

from django.core.management import call_command

from scheduling.files.arguments import LAST_PORT, whole
from scheduling.management.command import WeirCommand, refusal


class Command(WeirCommand):
    help = "Serve the portal on loopback, with all workers unless WEIR_BROKER_URL names a broker of theirs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=whole(1, LAST_PORT), default=8000)

    def handle(self, *args: Any, port: int, **options: Any) -> None:
        # As Ctrl-C: what was started is ended on the way out.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        import uvicorn

        from portal.config import serving  # the application is made when it is imported
        from portal.config.together import Ready, are_workers_here, run_together

        try:
            listener = serving.listen(port)
        except serving.PortTakenError as error:
            raise refusal(str(error)) from None
        call_command("migrate", verbosity=0, interactive=False)
        self._prepare(port)

        def portal(ready: Ready) -> None:
            ready()
            with suppress(KeyboardInterrupt):  # the server raises it again when it has stopped
                uvicorn.Server(serving.server_config()).run(sockets=[listener])

        if are_workers_here():
            run_together(portal, is_vital=False)
        else:
            portal(lambda: None)
        self.say("Stopped.")

    def _prepare(self, port: int) -> None:
        from portal.setup.inviting import invite, needs_admin
        from portal.teams.shipped_personas import ensure_personas, ensure_priority_classes

        ensure_priority_classes()
        ensure_personas()
        address = f"http://127.0.0.1:{port}"
        self._tell(f"\nWeir is at {address}/ . Ctrl-C stops it.")
        if needs_admin():
            link = f"{address}/set-up/first/{invite()}/"
            self._tell(
                f"Nobody administers it yet. Become its admin, once, within a day:\n{link}\n"
            )

    def _tell(self, lines: str) -> None:
        for line in lines.split("\n"):
            self.say(line)
        self.stdout.flush()
