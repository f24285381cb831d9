"""A cluster that lives: an API server in this process, Jobs on it, and cycles over them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.rate import Allowance
from scheduling.models import Cluster, State
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from tests.costs.counting import counted
from tests.factories import NOW
from tests.scheduling.kube import World, add_node, eventually, node, policy
from workshop.testbed.server import Clock, EmbeddedServer
from workshop.testbed.server.kinds.resources import JOBS
from workshop.testbed.server.store.context import Caller
from workshop.testbed.server.verbs.create import create

QUEUES = ("research", "products", "vision", "speech")
RENEWALS = 1
"""Writes of a cycle that has nothing to say: that of its lease, now and then."""
GPUS = 4
"""Of each Job, so that four run at once on two nodes of eight."""


@contextmanager
def living_cluster(jobs: int) -> Iterator[World]:
    """Two nodes of 8 GPUs and ``jobs`` suspended Jobs in four queues, of which no cycle knows yet.

    Its time and that of the portal is early in one minute: the first cycle of a minute books the one before.
    """
    clock = Clock(speed=0.05, start=NOW.replace(second=1))
    with (
        patch.object(Allowance, "left", _full),
        patch.object(Cluster, "now", lambda cluster: clock.now()),
        EmbeddedServer(port=0, clock=clock, startup_s=0.001, seed=1) as server,
    ):
        cluster = policy("enforce", server.url, *QUEUES, nominal_gpus=GPUS, name="living")
        world = World(cluster, server, Client.connect(cluster))
        for name in ("n1", "n2"):
            add_node(world.kube, node(name))
        submit(world, 0, jobs)
        yield world
        workers.close_all()
        world.kube.close()


def _full(allowance: Allowance) -> int:
    """Wall seconds fill it otherwise."""
    return allowance._at_once


def submit(world: World, first: int, count: int) -> None:
    """As ``kubectl apply`` would, without a request for each. Of one second the name decides who came first:
    later ones have later names, or they would move everybody before them on a quick machine."""
    with world.server.store.lock:
        for i in range(first, first + count):
            queue = QUEUES[i % len(QUEUES)]
            body = world.manifest(f"job-{i:04}", gpus=GPUS, queue=queue)
            create(world.server.world, Caller(), JOBS, "default", body)
    world.server.settle()


def settle(world: World) -> None:
    """Cycles until all that fits runs and everybody has been told how they stand."""
    running = world.cluster.workloads.filter(state=State.RUNNING)
    world.cycles_until(lambda: running.count() == len(QUEUES))
    eventually(lambda: cost_of_a_cycle(world).get("API writes", 0) <= RENEWALS)


def cost_of_a_cycle(world: World) -> dict[str, int]:
    """With the starts that it leaves on their way; how often one looks whether they are over is no cost."""
    world.catch_up()
    with counted() as counts:
        run_cycle(world.cluster.pk, trigger="test")
        sys.setprofile(None)
        starts = workers._turns[world.cluster.pk].link.enforcer
        eventually(lambda: not starts.starts)
    return {name: count for name, count in sorted(counts.items()) if count}
