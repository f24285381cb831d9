"""`python -m workshop.benches.worker.worker`: Weir's workers as `serve` runs them.

The processes of a machine for the cluster in the database (``DATABASE_URL``), until told to stop. Writes
``ready`` once a cycle has been planned: the engine is loaded then.
"""

from __future__ import annotations

import os
import sys
import time

READY_POLL_S = 0.1


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    import django

    django.setup()
    from scheduling.services.worker.children import ChildPart, Family
    from scheduling.services.worker.parts import load, parts

    load()
    said: list[int] = []
    ready = ChildPart("ready", say_ready, is_wanted=lambda: not said, gone=said.append)
    return Family([*parts(), ready]).run()


def say_ready() -> None:
    from scheduling.models import Cluster

    while not Cluster.objects.exclude(planned_at=None).exists():
        time.sleep(READY_POLL_S)
    sys.stdout.write("ready\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
