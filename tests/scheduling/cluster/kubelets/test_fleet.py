"""Simulated nodes on a real control plane: what its own controllers make of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.cluster.connection.client import Client, configuration_from
from tests.scheduling.kube import eventually
from workshop.testbed.control_plane.furniture import example_machines
from workshop.testbed.control_plane.plane import ControlPlane
from workshop.testbed.kubelets import SIMULATED, STOPPED, Machine, node_manifest

pytestmark = pytest.mark.real

MIG = "nvidia.com/mig-1g.5gb"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
LONG_S = 60.0


@pytest.fixture
def client(kubernetes: ControlPlane) -> Iterator[Client]:
    client = Client(configuration_from(kubernetes.access.kubeconfig))
    yield client
    client.close()


@pytest.fixture
def node(client: Client) -> str:
    """A partitioned node of this test's own, open for pods."""
    name = f"mig-{uuid.uuid4().hex[:6]}"
    machine = Machine(name, "nvidia.com/gpu", 0, 16, 64, labels={"own": name}, others={MIG: 7})
    client.create("/api/v1/nodes", node_manifest(machine))
    eventually(lambda: not client.get(f"/api/v1/nodes/{name}")["spec"].get("taints"), LONG_S)
    return name


def ready(client: Client, name: str) -> str:
    return _ready_at(client, f"/api/v1/nodes/{name}")


def _ready_at(client: Client, path: str) -> str:
    conditions = client.get(path)["status"]["conditions"]
    return next(c["status"] for c in conditions if c["type"] == "Ready")


def pod(node: str, *, slices: int = 1, **notes: str) -> dict[str, Any]:
    wants = {MIG: str(slices)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "work-",
            "annotations": {f"weir.dev/{k.replace('_', '-')}": v for k, v in notes.items()},
        },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {"own": node},
            "containers": [{"name": "main", "image": "work", "resources": {"limits": wants}}],
        },
    }


def run(client: Client, body: dict[str, Any]) -> str:
    return f"{PODS}/{client.create(PODS, body)['metadata']['name']}"


def phase(client: Client, path: str) -> str:
    return str(client.get(path)["status"]["phase"])


def test_node_is_ready_and_its_lease_is_renewed(client: Client, node: str) -> None:
    assert ready(client, node) == "True"
    first = eventually(lambda: _lease(client, node), LONG_S)
    assert eventually(lambda: _lease(client, node) != first, LONG_S)


def _lease(client: Client, node: str) -> str | None:
    found = [x for x in client.get(LEASES)["items"] if x["metadata"]["name"] == node]
    return found[0]["spec"]["renewTime"] if found else None


def test_partitions_are_scheduled_by_their_profile(client: Client, node: str) -> None:
    first = run(client, pod(node, slices=5))
    eventually(lambda: phase(client, first) == "Running", LONG_S)
    second = run(client, pod(node, slices=3))
    eventually(lambda: "Insufficient " + MIG in _why_not(client, second), LONG_S)


def _why_not(client: Client, path: str) -> str:
    conditions = client.get(path)["status"].get("conditions") or []
    return " ".join(c.get("message", "") for c in conditions if c["type"] == "PodScheduled")


@pytest.mark.parametrize(("code", "end"), [("0", "Succeeded"), ("3", "Failed")])
def test_pod_runs_for_its_time_and_ends_with_its_code(
    client: Client, node: str, code: str, end: str
) -> None:
    path = run(client, pod(node, run_seconds="1", exit_code=code))
    eventually(lambda: phase(client, path) == end, LONG_S)
    state = client.get(path)["status"]["containerStatuses"][0]["state"]["terminated"]
    assert state["exitCode"] == int(code)


def test_deleted_pod_keeps_its_grace_and_goes(client: Client, node: str) -> None:
    path = run(client, pod(node))
    eventually(lambda: phase(client, path) == "Running", LONG_S)
    deleted = client.delete(path)
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 1
    name = deleted["metadata"]["name"]
    eventually(lambda: name not in _names(client), LONG_S)


def _names(client: Client) -> set[str]:
    return {p["metadata"]["name"] for p in client.get(PODS)["items"]}


def test_suspended_job_goes_on_from_its_last_checkpoint(client: Client, node: str) -> None:
    body = pod(node, run_seconds="3600", checkpoint_seconds="1")
    template = {"metadata": {"annotations": body["metadata"]["annotations"]}, "spec": body["spec"]}
    name = f"train-{uuid.uuid4().hex[:6]}"
    spec = {"template": template, "backoffLimit": 0}
    client.create(JOBS, {"metadata": {"name": name}, "spec": spec})
    eventually(lambda: _checkpointed(client, name), LONG_S)
    client.patch(f"{JOBS}/{name}", {"spec": {"suspend": True}})
    assert eventually(lambda: _resumed_s(client, name), LONG_S) >= 1


def _resumed_s(client: Client, job: str) -> float:
    notes = client.get(f"{JOBS}/{job}")["metadata"].get("annotations") or {}
    return float(notes.get("weir.dev/resumed-seconds", 0))


def _checkpointed(client: Client, job: str) -> bool:
    pods = client.get(PODS, labelSelector=f"job-name={job}")["items"]
    return any("weir.dev/checkpointed-at" in p["metadata"]["annotations"] for p in pods)


def test_silenced_node_is_missed_and_comes_back(client: Client, node: str) -> None:
    path = f"/api/v1/nodes/{node}"
    client.patch(path, {"metadata": {"annotations": {STOPPED: "true"}}})
    eventually(lambda: ready(client, node) == "Unknown", LONG_S)
    client.patch(path, {"metadata": {"annotations": {STOPPED: None}}})
    eventually(lambda: ready(client, node) == "True", LONG_S)


def test_pod_is_ready_again_when_its_silenced_node_comes_back(client: Client, node: str) -> None:
    """The node controller says of pods whose node it misses that they are not ready."""
    work = run(client, pod(node))
    eventually(lambda: phase(client, work) == "Running", LONG_S)
    path = f"/api/v1/nodes/{node}"
    client.patch(path, {"metadata": {"annotations": {STOPPED: "true"}}})
    eventually(lambda: _ready_at(client, work) == "False", LONG_S)
    client.patch(path, {"metadata": {"annotations": {STOPPED: None}}})
    eventually(lambda: _ready_at(client, work) == "True", LONG_S)
    assert phase(client, work) == "Running"


def test_nodes_of_others_are_left_alone(client: Client) -> None:
    name = f"theirs-{uuid.uuid4().hex[:6]}"
    body = node_manifest(Machine(name, "nvidia.com/gpu", 8, 16, 64))
    del body["metadata"]["labels"][SIMULATED]
    client.create("/api/v1/nodes", body)
    eventually(lambda: ready(client, name) == "Unknown", LONG_S)
    assert _lease(client, name) is None


def test_examples_have_racks_blocks_and_partitions() -> None:
    made = [node_manifest(machine) for machine in example_machines()]
    racks = {m["metadata"]["labels"]["weir.dev/rack"] for m in made}
    offered = {name for m in made for name in m["status"]["allocatable"]}
    assert len(racks) >= 3
    assert {"nvidia.com/gpu", MIG} <= offered
