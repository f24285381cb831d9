"""Program for test_tasks: database, embedded cluster, Celery worker and beat in one process."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")


def main() -> int:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)

    from scheduling.cluster.client import Client
    from scheduling.cluster.embedded import EmbeddedServer
    from scheduling.services.worker import embedded_worker
    from tests.scheduling.kube import World, node, policy

    with EmbeddedServer(port=0, startup_s=0.01) as server:
        cluster = policy("enforce", server.url, "research")
        kube = Client.connect(cluster)
        kube.create("/api/v1/nodes", node("n1"))
        world = World(cluster, server, kube)
        with embedded_worker():
            world.job("early")
            first = waited(world, "early")
            began = time.monotonic()
            world.job("late")
            second = waited(world, "late") and time.monotonic() - began
        if first and second:
            sys.stdout.write(f"admitted; the second by its event after {second:.2f} s\n")
        return 0 if first and second else 1


def waited(world: object, name: str) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if not world.read(name)["spec"]["suspend"]:  # type: ignore[attr-defined]
            return True
        time.sleep(0.02)
    return False


if __name__ == "__main__":
    sys.exit(main())
