"""`python -m scheduling.benches.worker.worker`: Weir's worker as production runs it.

A Celery worker and beat for the cluster in the database (``DATABASE_URL``) until it is told to
stop. Writes ``ready`` once a cycle has been planned: the engine is loaded then.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

READY_POLL_S = 0.1


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    import django

    django.setup()
    from scheduling.models import Cluster
    from scheduling.services.worker.embedded import embedded_worker

    cluster = Cluster.objects.get()
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
    main()
