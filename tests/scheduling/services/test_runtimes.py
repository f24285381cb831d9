"""Pods of a RuntimeClass take its overhead of their nodes' CPU and memory, whoever they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.scheduling.kube import JOBS, World

Json = dict[str, Any]
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


@pytest.fixture
def sandbox(world: World) -> Iterator[str]:
    """Pods of this class take 30 of their node's 96 CPUs on top."""
    body = {"metadata": {"name": "sandbox"}, "handler": "sandbox"}
    world.kube.create(CLASSES, {**body, "overhead": {"podFixed": {"cpu": "30"}}})
    yield "sandbox"
    world.kube.delete(f"{CLASSES}/sandbox")


def asking(world: World, name: str, cpus: str, **pod: Any) -> Json:
    job = world.manifest(name)
    spec = job["spec"]["template"]["spec"]
    spec["containers"][0]["resources"]["requests"]["cpu"] = cpus
    spec |= pod
    return job


def admitted(world: World, *names: str) -> list[str]:
    return [name for name in names if not world.read(name)["spec"]["suspend"]]


def test_members_are_let_in_only_where_their_overhead_fits(world: World, sandbox: str) -> None:
    """60 CPUs each: two nodes of 96 have room for one each; without the overhead for three."""
    names = ["w1", "w2", "w3"]
    for name in names:
        world.kube.create(JOBS, asking(world, name, "30", runtimeClassName=sandbox))
    world.cycles_until(lambda: len(admitted(world, *names)) == 2)
    world.cycle()

    assert len(admitted(world, *names)) == 2
    (waiting,) = set(names) - set(admitted(world, *names))
    assert "CPU" in world.row(waiting).sentence


def test_overhead_of_pods_outside_the_queues_is_not_planned_with(
    world: World, sandbox: str
) -> None:
    """Pods that nobody queued hold 40 of each node's 96 CPUs, 30 of them by their class."""
    for name in ("n1", "n2"):
        container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "10"}}}
        spec = {"containers": [container], "nodeName": name, "runtimeClassName": sandbox}
        body = {"metadata": {"name": f"on-{name}"}, "spec": spec}
        world.kube.create("/api/v1/namespaces/default/pods", body)
    world.kube.create(JOBS, asking(world, "w1", "60"))
    world.kube.create(JOBS, asking(world, "w2", "50"))
    world.cycles_until(lambda: admitted(world, "w2"))
    world.cycle()

    assert admitted(world, "w1", "w2") == ["w2"]


def test_plain_pods_take_the_overhead_of_their_class(world: World, sandbox: str) -> None:
    spec = asking(world, "p", "30", runtimeClassName=sandbox)["spec"]["template"]["spec"]
    spec["schedulingGates"] = [{"name": "weir.dev/queue"}]
    path = "/api/v1/namespaces/default/pods"
    meta = {"name": "p1", "labels": {"weir.dev/queue": "research"}}
    world.kube.create(path, {"metadata": meta, "spec": spec})
    world.cycle()

    assert world.row("p1").cpus == 60_000
