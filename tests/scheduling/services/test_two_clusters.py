"""Two clusters under one worker process, in which nodes, queues and work have the same names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.models import Cluster, ClusterMode, Node, Queue, State
from tests.scheduling.kube import JOBS, World, add_node, node, policy
from workshop.testbed.server import Clock, EmbeddedServer


@pytest.fixture
def twin(world: World) -> Iterator[World]:
    """Another cluster with nodes ``n1`` and ``n2`` and the queues of ``world``."""
    with EmbeddedServer(port=0, clock=Clock(speed=1), startup_s=0.01) as server:
        queues = ("research", "products")
        cluster = policy("enforce", server.url, *queues, nominal_gpus=8, name="twin")
        kube = Client.connect(cluster)
        for name in ("n1", "n2"):
            add_node(kube, node(name))
        yield World(cluster, server, kube)
        kube.close()


def runs(world: World, name: str) -> None:
    world.cycles_until(lambda: world.row(name).state == State.RUNNING)


def allocated(world: World) -> int:
    world.cycle()
    nodes = Node.objects.filter(cluster=world.cluster)
    return sum(nodes.values_list("allocated_gpus", flat=True))


def test_work_of_the_same_name_lives_in_each_cluster_by_itself(world: World, twin: World) -> None:
    world.job("w1", gpus=2, pods=3)
    twin.job("w1", gpus=1)
    runs(world, "w1")
    runs(twin, "w1")
    assert (allocated(world), allocated(twin)) == (6000, 1000)

    world.kube.delete(f"{JOBS}/w1", {"propagationPolicy": "Background"})
    world.cycles_until(lambda: world.row("w1").state == State.FINISHED)
    twin.cycle()
    assert twin.row("w1").state == State.RUNNING
    assert not twin.read("w1")["spec"]["suspend"]


def test_queue_that_is_stopped_in_one_cluster_is_open_in_the_other(
    world: World, twin: World
) -> None:
    Queue.objects.filter(cluster=world.cluster, name="research").update(stop="hold")
    for each in (world, twin):
        each.job("w1")
    runs(twin, "w1")
    world.cycle()

    assert world.row("w1").state == State.PENDING
    assert world.read("w1")["spec"]["suspend"]


def test_limit_of_one_cluster_is_not_filled_by_the_other(world: World, twin: World) -> None:
    Queue.objects.filter(name="research").update(max_running=1)
    for each in (world, twin):
        each.job("w1")
        runs(each, "w1")
        each.job("w2")
        each.cycles_until(lambda each=each: each.row("w2").reason == "queue_at_job_limit")


def test_mode_of_one_cluster_is_its_own(world: World, twin: World) -> None:
    Cluster.objects.filter(pk=twin.cluster.pk).update(mode=ClusterMode.OBSERVE)
    for each in (world, twin):
        each.job("w1")
    runs(world, "w1")
    twin.cycle()

    assert twin.read("w1")["spec"]["suspend"]
    assert "weir.dev/gpu-class" not in twin.notes("w1")
