"""`python -m scheduling.services.benches.worker KUBECONFIG LOAD`: Weir's worker as production runs it.

A database of its own (``DATABASE_URL``) with the load's policy, then a Celery worker and beat until it
is told to stop. Writes ``ready`` once a cycle has been planned: the engine is loaded then.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from .work import Load

READY_POLL_S = 0.1


def main(kubeconfig: str, load: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from scheduling.services.benches.policy import write_policy
    from scheduling.services.worker import embedded_worker

    cluster = write_policy(Load.read(load), kubeconfig)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with embedded_worker():
        while cluster.planned_at is None:
            time.sleep(READY_POLL_S)
            cluster.refresh_from_db(fields=["planned_at"])
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        stop.wait()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
