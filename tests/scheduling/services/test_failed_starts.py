"""Starts that fail for what no plan reads: the node is left out for that work, in kube-scheduler's words.

An empty cluster is filled from n1 on. Each node has one network card, and those of n1 and n2 are taken by
pods outside the queues, which plans are kept from reading here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduling.cluster.adapters import needs, start_faults
from scheduling.cluster.adapters.bounds import barring
from scheduling.cluster.adapters.start_faults import NO_FAULT, StartFault
from scheduling.cluster.picture.node_sets import NodeSets
from scheduling.cluster.picture.nodes import ObservedNode
from scheduling.cluster.vocabulary import refusals
from scheduling.cluster.vocabulary.quantities import rfc3339
from scheduling.models import Cluster, State, Workload
from scheduling.services.cycle.project import missing_members
from scheduling.services.snapshot import obstacles
from tests.scheduling.killing import restart
from tests.scheduling.kube import JOBS, World, add_node, node
from tests.scheduling.manifests import MANIFESTS
from tests.scheduling.operators import adapter_of, install
from tests.scheduling.services.test_pod_groups import pod

CARD = "rdma/hca"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans do not see how many cards are left, as they do not see what depends on pods to come."""
    monkeypatch.setattr(needs, "amounts", lambda pod, said: {})
    monkeypatch.setattr(missing_members, "UNPLACED_S", 0.0)
    monkeypatch.setattr(obstacles, "START_BACK_OFF_S", (0.5, 60.0))
    Cluster.objects.update(stale_gang_grace_s=0)


def with_card(world: World, name: str) -> None:
    job = world.manifest(name, gpus=4)
    resources = job["spec"]["template"]["spec"]["containers"][0]["resources"]
    for amounts in (resources["requests"], resources["limits"]):
        amounts[CARD] = "1"
    world.kube.create(JOBS, job)


def cards_taken(world: World) -> None:
    for name in ("n1", "n2"):
        cards = {part: {CARD: "1"} for part in ("capacity", "allocatable")}
        world.kube.patch(f"/api/v1/nodes/{name}/status", {"status": cards})
        container = {"name": "main", "image": "x", "resources": {"limits": {CARD: "1"}}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"holds-the-card-of-{name}"},
            "spec": {"nodeName": name, "containers": [container]},
        }
        world.kube.create("/api/v1/namespaces/default/pods", pod)


def node_with_card(world: World) -> None:
    cards_taken(world)
    made = node("n3")
    for part in ("capacity", "allocatable"):
        made["status"][part] = {**made["status"][part], CARD: "1"}
    add_node(world.kube, made)
    world.kube.patch("/api/v1/nodes/n2", {"spec": {"unschedulable": True}})


def failed(world: World) -> bool:
    return world.notes("w1").get("weir.dev/start-failures") == "1"


def test_node_that_kube_scheduler_finds_unfit_is_left_out_and_the_next_is_tried(
    world: World, hurried: None
) -> None:
    node_with_card(world)
    with_card(world, "w1")
    world.cycles_until(lambda: failed(world))
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)

    assert world.row("w1").placement == {"n3": 1}
    rules = world.read("w1")["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert "preferredDuringSchedulingIgnoredDuringExecution" in rules


def test_words_of_kube_scheduler_are_told_and_outlive_the_worker(
    world: World, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstacles, "START_BACK_OFF_S", (600.0, 600.0))
    cards_taken(world)
    with_card(world, "w1")
    world.cycles_until(lambda: failed(world))
    restart(world)
    world.cycles_until(lambda: world.row("w1").reason == "gang_incomplete")

    assert "kube-scheduler places its pods nowhere: 0/2 nodes" in world.row("w1").sentence
    assert f"Insufficient {CARD}" in world.row("w1").sentence
    kept = start_faults.read(world.notes("w1")["weir.dev/start-fault"])
    assert kept.barred_at(datetime.now(UTC)) == {"n1"}


@pytest.mark.parametrize(
    ("barred", "left"),
    [
        pytest.param({"n1"}, {"n2"}, id="one"),
        pytest.param({"n1", "gone"}, {"n2"}, id="one_that_is_gone"),
        pytest.param({"n1", "n2"}, {"n1", "n2"}, id="all_are_tried_again"),
    ],
)
def test_barred_nodes_are_left_out_while_others_are_there(barred: set[str], left: set[str]) -> None:
    text = barring("", barred)

    found = NodeSets().of({text}, [_node("n1"), _node("n2")])
    assert found == {text: left}


def test_node_is_barred_until_its_time() -> None:
    now = datetime(2026, 11, 27, tzinfo=UTC)
    fault = start_faults.read(StartFault("Full.", {"n1": now}).dump())

    assert fault.said == "Full."
    assert fault.barred_at(now - timedelta(seconds=1)) == {"n1"}
    assert fault.barred_at(now) == frozenset()


@pytest.mark.parametrize("text", ["", "no", "[]", "{}", '{"said": 1, "nodes": 2}'])
def test_nonsense_on_an_object_bars_nothing(text: str) -> None:
    assert start_faults.read(text) == NO_FAULT


def _node(name: str) -> ObservedNode:
    return ObservedNode(name, name, {}, "h100", 8000, 0, 0, True, 0)


def test_node_that_failed_a_group_of_plain_pods_is_left_out_for_its_pods_that_are_made_anew(
    world: World, hurried: None
) -> None:
    def make() -> None:
        limits = {"nvidia.com/gpu": "4", CARD: "1"}
        resources = {"limits": limits, "requests": limits}
        pod(
            world, "p0", group="g", total=1,
            containers=[{"name": "main", "image": "work", "resources": resources}],
        )  # fmt: skip

    node_with_card(world)
    make()
    world.cycles_until(lambda: not pods_named(world, "p0"))
    world.cycle()
    make()
    world.cycles_until(lambda: Workload.objects.filter(name="g", state=State.RUNNING))

    assert Workload.objects.get(name="g", state=State.RUNNING).placement == {"n3": 1}


def pods_named(world: World, name: str) -> list[Any]:
    items = world.kube.get("/api/v1/namespaces/default/pods")["items"]
    return [item for item in items if item["metadata"]["name"] == name]


def crowded_namespace(world: World, hard: dict[str, str]) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": hard},
    }
    world.kube.create("/api/v1/namespaces/default/resourcequotas", quota)


@pytest.fixture
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_members, "SETTLE_S", 0.0)


def test_words_of_the_api_server_that_refuses_pods_are_told_and_the_gpus_given_back_before_the_grace(
    world: World, settled_at_once: None
) -> None:
    Cluster.objects.update(stale_gang_grace_s=3600)
    crowded_namespace(world, {"requests.nvidia.com/gpu": "2"})
    world.job("w1", gpus=4)
    world.cycles_until(lambda: failed(world))
    world.cycles_until(lambda: world.row("w1").reason == "gang_incomplete")

    said = world.row("w1").sentence
    assert said.startswith('The API server refuses its pods: pods "w1-')
    assert "exceeded quota: small, requested: requests.nvidia.com/gpu=4" in said
    assert "It is tried again at " in said
    assert world.row("w1").placement == {}
    assert world.read("w1")["spec"]["suspend"] is True


def test_refusal_of_an_earlier_start_ends_no_later_one(
    world: World, hurried: None, settled_at_once: None
) -> None:
    crowded_namespace(world, {"requests.nvidia.com/gpu": "2"})
    world.job("w1", gpus=4)
    world.cycles_until(lambda: failed(world))
    world.kube.delete("/api/v1/namespaces/default/resourcequotas/small")
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    world.cycle()

    assert world.row("w1").state == State.RUNNING


REFUSED = 'pods "w1-0" is forbidden: exceeded quota: small'
TOLD = [
    ("RayCluster", "FailedToCreateWorkerPod",
     f"Failed to create worker Pod for the cluster default/w1, {REFUSED}"),
    ("RayCluster", "FailedToCreateHeadPod", f"Failed to create head Pod default/w1-head, {REFUSED}"),
    ("RayJob", "FailedToCreateRayCluster", f"Failed to create RayCluster default/w1-x: {REFUSED}"),
    ("JobSet", "JobCreationFailed", REFUSED),
    ("MPIJob", "MPIJobFailed", f"worker pod created failed: {REFUSED}"),
    ("PyTorchJob", "FailedCreatePod", f"Error creating: {REFUSED}"),
]  # fmt: skip


def told_of(world: World, kind: str, reason: str, message: str) -> None:
    """An Event of the operator on the object ``w1``."""
    adapter = adapter_of(kind)
    uid = world.kube.get(adapter.path("default", "w1"))["metadata"]["uid"]
    of = {"kind": kind, "namespace": "default", "name": "w1", "uid": uid}
    at = rfc3339(datetime.now(UTC) + timedelta(seconds=1))
    body = {
        "metadata": {"generateName": "w1."}, "involvedObject": {**of, "apiVersion": adapter.api_version},
        "type": "Warning", "reason": reason, "message": message, "lastTimestamp": at, "count": 1,
        "source": {"component": "operator"},
    }  # fmt: skip
    world.kube.create("/api/v1/namespaces/default/events", body)


@pytest.mark.parametrize(("kind", "reason", "message"), TOLD, ids=[f"{k}_{r}" for k, r, _ in TOLD])
def test_words_of_the_api_server_are_told_whichever_operator_heard_them(
    world: World, settled_at_once: None, kind: str, reason: str, message: str
) -> None:
    Cluster.objects.update(stale_gang_grace_s=3600)
    install(world.kube)
    adapter = adapter_of(kind)
    world.kube.create(adapter.path("default", ""), MANIFESTS[kind]("w1"))
    world.cycles_until(
        lambda: not adapter.is_suspended(world.kube.get(adapter.path("default", "w1")))
    )
    told_of(world, kind, reason, message)
    world.cycles_until(lambda: world.row("w1").reason == "gang_incomplete")

    assert world.row("w1").sentence.startswith(f"The API server refuses its pods: {REFUSED}. ")
    assert world.row("w1").placement == {}


@pytest.mark.parametrize(
    ("reason", "message", "said"),
    [(r, m, REFUSED) for _, r, m in TOLD]
    + [("MPIJobFailed", "MPIJob default/w1 has failed", ""), ("FailedCreate", "", "")],
)
def test_event_says_what_the_api_server_said(reason: str, message: str, said: str) -> None:
    meta = {"name": "e", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    event = {"metadata": meta, "reason": reason, "message": message}

    assert refusals.trim(event)["said"] == said
