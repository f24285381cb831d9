"""Program for test_tasks: database, embedded cluster, Celery worker and beat in one process."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduling.models import Cluster

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")


def main() -> int:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)

    from scheduling.cluster.connection.client import Client
    from tests.scheduling.embedded import embedded_worker
    from tests.scheduling.kube import World, node, policy
    from workshop.testbed.server import EmbeddedServer

    def site(server: EmbeddedServer, name: str) -> World:
        cluster = policy("enforce", server.url, "research", name=name)
        kube = Client.connect(cluster)
        kube.create("/api/v1/nodes", node("n1"))
        return World(cluster, server, kube)

    with (
        EmbeddedServer(port=0, startup_s=0.01) as first,
        EmbeddedServer(port=0, startup_s=0.01) as second,
    ):
        world = site(first, "test")
        with embedded_worker():
            world.job("early")
            done = [waited(world, "early")]
            began = time.monotonic()
            world.job("late")
            done.append(waited(world, "late"))
            sys.stdout.write(f"admitted; the second after {time.monotonic() - began:.2f} s\n")
            newcomer = site(second, "newcomer")
            newcomer.job("there")
            done.append(waited(newcomer, "there"))
            sys.stdout.write("and on a cluster that was added meanwhile\n" if done[-1] else "")
            done.append(closed(newcomer.cluster))
        return 0 if all(done) else 1


def closed(cluster: Cluster) -> bool:
    """Whether the worker lets go of a cluster whose row is gone."""
    from scheduling.services.worker import cluster_turns as workers

    pk, until = cluster.pk, time.monotonic() + 60
    while not deleted(cluster):
        assert time.monotonic() < until, "rows of the cluster are written faster than deleted"
    while pk in workers._turns and time.monotonic() < until:
        time.sleep(0.05)
    return pk not in workers._turns


def deleted(cluster: Cluster) -> bool:
    """Not if the worker writes a row of it meanwhile."""
    from django.db import IntegrityError, transaction

    try:
        with transaction.atomic():
            cluster.queues.exclude(parent=None).delete()
            type(cluster).objects.filter(pk=cluster.pk).delete()
    except IntegrityError:
        return False
    return True


def waited(world: object, name: str) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if not world.read(name)["spec"]["suspend"]:  # type: ignore[attr-defined]
            return True
        time.sleep(0.02)
    return False


if __name__ == "__main__":
    sys.exit(main())
