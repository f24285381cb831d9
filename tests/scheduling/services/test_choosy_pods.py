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
ON_N1, ON_N2 = {"kubernetes.io/hostname": "n1"}, {"kubernetes.io/hostname": "n2"}


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


def bound(
    world: World, name: str, gpus: int, pods: int = 1, queue: str = "research", **spec: Any
) -> None:
    job = world.manifest(name, gpus=gpus, pods=pods, queue=queue)
    job["spec"]["template"]["spec"] |= spec
    world.kube.create(JOBS, job)


def test_gang_waits_while_the_nodes_that_it_may_use_are_full_and_says_so(world: World) -> None:
    bound(world, "w1", 6, nodeSelector=ON_N2)
    world.cycles_until(lambda: running(world, "w1"))
    bound(world, "w2", 4, nodeSelector=ON_N2)
    for _ in range(3):
        world.cycle()

    assert world.read("w2")["spec"]["suspend"]
    assert world.states("w2") == [State.PENDING]
    row = world.row("w2")
    assert row.reason == "no_room_on_its_nodes"
    assert (
        "let it run on 1 of 2 nodes of h100: 2 are free there, and this gang needs 4."
        in row.sentence
    )
    world.edit("w1", {"spec": {"suspend": True}})
    world.cycles_until(lambda: running(world, "w2"))
    assert world.row("w2").placement == {"n2": 1}


def test_gang_is_sent_to_the_very_hosts_of_its_plan(world: World) -> None:
    """Its pods need not look for a place of their own: they are required to go where they are planned."""
    bound(world, "w1", 4, pods=2, affinity=node_affinity("kubernetes.io/hostname", "n2"))
    world.cycles_until(lambda: running(world, "w1"))

    rules = world.read("w1")["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert "preferredDuringSchedulingIgnoredDuringExecution" not in rules
    assert world.row("w1").placement == {"n2": 2}


def test_job_that_no_node_lets_in_can_never_start(world: World) -> None:
    bound(world, "w1", 1, nodeSelector={"disk": "ssd"})
    world.cycle()

    row = world.row("w1")
    assert (row.reason, world.read("w1")["spec"]["suspend"]) == ("never_fits", True)
    assert row.sentence.endswith("let it run on none of the 2 nodes of h100.")


def test_work_in_its_place_leaves_nodes_that_it_may_not_use_alone(world: World) -> None:
    """``products`` borrows all of n1 and lends n2; ``research`` takes back what it can use."""
    bound(world, "a", 8, queue="products", nodeSelector=ON_N1)
    bound(world, "b", 8, queue="products", nodeSelector=ON_N2)
    world.cycles_until(lambda: running(world, "a", "b"))
    bound(world, "mine", 8, nodeSelector=ON_N2)
    world.cycles_until(lambda: running(world, "mine"))

    assert world.row("a").state == State.RUNNING
    assert world.row("b").state in (State.REQUEUED, State.PENDING)


@pytest.mark.parametrize("by_class", [False, True])
def test_node_kept_by_a_taint_takes_work_that_tolerates_it_and_no_other(
    world: World, by_class: bool
) -> None:
    keep = [{"key": "team", "value": "vision", "effect": "NoSchedule"}]
    world.kube.patch("/api/v1/nodes/n1", {"spec": {"taints": keep}})
    knows = [{"key": "team", "operator": "Equal", "value": "vision", "effect": "NoSchedule"}]
    body = {"metadata": {"name": "vision"}, "handler": "vision"}
    world.kube.create(CLASSES, {**body, "scheduling": {"tolerations": knows}})
    more = {"runtimeClassName": "vision"} if by_class else {"tolerations": knows}
    try:
        bound(world, "any", 4, queue="products")
        world.cycles_until(lambda: running(world, "any"))
        bound(world, "large", 8)
        bound(world, "knows", 4, queue="products", nodeSelector=ON_N1, **more)
        world.cycles_until(lambda: running(world, "knows"))
    finally:
        world.kube.delete(f"{CLASSES}/vision")
        world.kube.patch("/api/v1/nodes/n1", {"spec": {"taints": None}})

    placed = [world.row(name).placement for name in ("any", "knows")]
    assert placed == [{"n2": 1}, {"n1": 1}]
    assert world.row("large").reason == "no_room_on_its_nodes"
    assert world.read("large")["spec"]["suspend"]


def test_job_runs_where_the_device_is_that_it_asks_for_beside_gpus(world: World) -> None:
    path = "/api/v1/nodes/n2/status"
    world.kube.patch(path, {"status": {"allocatable": {"example.com/rdma": "2"}}})
    for name, count in (("one", 1), ("many", 4)):
        job = world.manifest(name, gpus=4)
        (container,) = job["spec"]["template"]["spec"]["containers"]
        container["resources"]["limits"] = {
            **container["resources"].get("limits", {}), "example.com/rdma": str(count)
        }  # fmt: skip
        world.kube.create(JOBS, job)
    world.cycles_until(lambda: running(world, "one"))

    assert world.row("one").placement == {"n2": 1}
    assert world.row("many").reason == "never_fits"
    assert "devices beside GPUs" in world.row("many").sentence
