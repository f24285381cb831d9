"""Pods that their author lets run on some nodes of a GPU class only.

An empty cluster is filled from n1 on, so that is where the plan has the first of them.
"""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import Queue, State
from tests.scheduling.kube import JOBS, World
from tests.scheduling.manifests import node_affinity, template

Json = dict[str, Any]

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
ON_N2 = {"kubernetes.io/hostname": "n2"}


def running(world: World, *names: str) -> bool:
    return all(world.row(name).state == State.RUNNING for name in names)


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param({"nodeSelector": ON_N2}, id="selector"),
        pytest.param({"affinity": node_affinity("kubernetes.io/hostname", "n2")}, id="affinity"),
    ],
)
def test_job_runs_on_the_node_that_its_author_wants(world: World, rules: Json) -> None:
    job = world.manifest("w1", gpus=4)
    job["spec"]["template"]["spec"] |= rules
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: running(world, "w1"))

    assert world.row("w1").placement == {"n2": 1}
    world.cycle()
    assert world.cycle().written == 0


def test_what_it_holds_there_is_planned_with(world: World) -> None:
    """Eight GPUs are free on n1 then, and four on n2."""
    job = world.manifest("w1", gpus=4)
    job["spec"]["template"]["spec"]["nodeSelector"] = ON_N2
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: running(world, "w1"))
    world.job("w2", gpus=8)
    world.cycles_until(lambda: running(world, "w2"))

    assert world.row("w2").placement == {"n1": 1}


def test_evicted_job_comes_back_to_where_its_author_wants_it(world: World) -> None:
    job = world.manifest("w1", gpus=4)
    job["spec"]["template"]["spec"]["nodeSelector"] = ON_N2
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: running(world, "w1"))
    Queue.objects.filter(name="research").update(stop="drain")
    world.cycles_until(lambda: world.row("w1").state == State.REQUEUED)

    pod = world.read("w1")["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == ON_N2
    Queue.objects.filter(name="research").update(stop="none")
    world.cycles_until(lambda: running(world, "w1"))
    assert world.row("w1").placement == {"n2": 1}


def test_gang_is_spread_over_the_nodes_that_its_author_wants(world: World) -> None:
    for name in ("n1", "n2"):
        world.kube.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"disk": name}}})
    job = world.manifest("w1", gpus=2, pods=2)
    job["spec"]["template"]["spec"]["affinity"] = node_affinity("disk", "n1", operator="NotIn")
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: running(world, "w1"))

    assert world.row("w1").placement == {"n2": 2}


def test_job_runs_on_the_nodes_of_its_runtime_class(world: World) -> None:
    world.kube.patch("/api/v1/nodes/n2", {"metadata": {"labels": {"enclave": "yes"}}})
    scheduling = {"nodeSelector": {"enclave": "yes"}}
    body = {"metadata": {"name": "enclave"}, "handler": "enclave", "scheduling": scheduling}
    world.kube.create(CLASSES, body)
    job = world.manifest("w1", gpus=4)
    job["spec"]["template"]["spec"]["runtimeClassName"] = "enclave"
    world.kube.create(JOBS, job)
    try:
        world.cycles_until(lambda: running(world, "w1"))
    finally:
        world.kube.delete(f"{CLASSES}/enclave")

    assert world.row("w1").placement == {"n2": 1}


def test_plain_pod_runs_on_the_node_that_its_author_wants(world: World) -> None:
    pod = template(4)["spec"] | {
        "schedulingGates": [{"name": "weir.dev/queue"}],
        "nodeSelector": ON_N2,
    }
    meta = {"name": "p1", "labels": {"weir.dev/queue": "research"}}
    world.kube.create("/api/v1/namespaces/default/pods", {"metadata": meta, "spec": pod})
    world.cycles_until(lambda: running(world, "p1"))

    assert world.row("p1").placement == {"n2": 1}
