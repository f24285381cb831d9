"""Program: what an installation does between a backup and its end, and what its engine does after it.

``between NAME``: a team NAME, and its entry in the audit log. ``cycle``: passes over the cluster, as the
engine's worker makes them, until nothing waits; prints how each workload stands.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

MOST_S = 240
"""The lease of the process before has to end, and a machine may be slow."""


def between(name: str) -> str:
    from portal.accounts.models import User
    from portal.teams.people import save_team
    from scheduling.models import Queue
    from scheduling.services.events import deliver_due

    boss, _ = User.objects.get_or_create(username="boss", is_superuser=True)
    save_team(by=boss, name=name, queue=Queue.objects.get(name=name))
    deliver_due()
    return name


def cycle() -> str:
    from scheduling.models import Cluster, Workload
    from scheduling.services.worker.cycles import run_cycle

    pk, until = Cluster.objects.get().pk, time.monotonic() + MOST_S
    rows = Workload.objects.order_by("name").values_list("name", "state")
    while run_cycle(pk).skipped or "pending" in dict(rows.all()).values() or not rows.all():
        if time.monotonic() > until:
            raise SystemExit(f"still: {list(rows.all())}")
        time.sleep(0.5)
    return json.dumps(dict(rows.all()))


def main(verb: str, *names: str) -> None:
    import django

    django.setup()
    sys.stdout.write({"between": between, "cycle": cycle}[verb](*names))
    sys.stdout.flush()
    os._exit(0)  # watches of the cluster go on for ever


if __name__ == "__main__":
    main(*sys.argv[1:])
