"""Why a node takes no work, as the cluster tells it."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.adapters import ClassSpec
from scheduling.cluster.picture.nodes import ObservedNode, bare_of, closed, rows_of, trim_node
from scheduling.cluster.vocabulary.conditions import LONGEST, Trouble
from scheduling.cluster.vocabulary.devices import Devices
from tests.scheduling import kube

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
H100 = ClassSpec("h100", GPU, {"gpu": "h100"})
THEN, LATER = "2026-11-19T09:12:00Z", "2026-11-19T09:42:00Z"


def condition(kind: str, status: str, **more: str) -> Json:
    return {"type": kind, "status": status, "lastTransitionTime": THEN, **more}


def row(*conditions: Json, spec: Json | None = None, **status: Json) -> ObservedNode:
    node = kube.node("n1")
    node["metadata"] |= {"uid": "1", "resourceVersion": "1"}
    node["status"] |= {"conditions": [condition("Ready", "True"), *conditions], **status}
    if spec is not None:
        node["spec"] = spec
    [found] = closed(rows_of(trim_node(node), (), [H100], Devices()), set())
    return found


def without_ready(*conditions: Json) -> tuple[Trouble, ...]:
    return row(conditions=[*conditions]).troubles


def test_node_that_is_well_has_no_trouble():
    assert row(condition("DiskPressure", "False")).troubles == ()


def test_node_not_ready_says_the_reason_the_message_and_since_when():
    said = {"reason": "KubeletNotReady", "message": "container runtime is down"}
    assert without_ready(condition("Ready", "False", **said)) == (
        Trouble("not_ready", "KubeletNotReady", "container runtime is down", THEN),
    )


def test_silent_kubelet_says_when_it_last_spoke():
    told = condition("Ready", "Unknown", reason="NodeStatusUnknown", lastHeartbeatTime=LATER)
    assert without_ready(told) == (Trouble("silent", "NodeStatusUnknown", since=LATER),)


def test_heartbeat_of_a_node_that_speaks_changes_nothing():
    first, second = (
        row(condition("DiskPressure", "True", lastHeartbeatTime=time)) for time in (THEN, LATER)
    )
    assert first == second


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("DiskPressure", "disk_pressure"),
        ("MemoryPressure", "memory_pressure"),
        ("PIDPressure", "pid_pressure"),
        ("NetworkUnavailable", "network_unavailable"),
    ],
)
def test_pressure_is_told_by_its_name(kind, code):
    assert [trouble.code for trouble in row(condition(kind, "True")).troubles] == [code]


def test_cordon_says_since_when():
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": LATER}
    found = row(spec={"unschedulable": True, "taints": [taint]})
    assert found.troubles == (Trouble("cordoned", since=LATER),)
    assert not found.ready


def test_cordon_says_which_program_set_it():
    node = kube.node("n1")
    fields = {"f:spec": {"f:unschedulable": {}}}
    entry = {"manager": "kubectl-cordon", "time": THEN, "fieldsV1": fields}
    node["metadata"] |= {"managedFields": [entry]}
    node["spec"] = {"unschedulable": True}
    [found] = rows_of(trim_node(node), (), [H100], Devices())
    assert found.troubles == (Trouble("cordoned", "kubectl-cordon", since=THEN),)


def test_taint_that_closes_the_node_is_named():
    found = row(spec={"taints": [{"key": "maintenance", "value": "fan", "effect": "NoSchedule"}]})
    # The only node of its class: what all nodes carry closes none.
    assert found.ready
    other = kube.node("n2")
    other["spec"] = {}
    rows = [found, *rows_of(trim_node(other), (), [H100], Devices())]
    [shut, _] = closed(rows, set())
    assert shut.troubles == (Trouble("tainted", "maintenance=fan", "NoSchedule"),)


def test_gpus_announced_and_not_allocatable_are_counted():
    found = row(allocatable={"nvidia.com/gpu": "6"}, capacity={"nvidia.com/gpu": "8"})
    assert found.gpus == 6000
    assert found.troubles == (Trouble("unhealthy_gpus", gpus=2000),)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"capacity": {GPU: "8"}, "allocatable": {GPU: "0"}}, [8000]),
        ({"capacity": {GPU: "8"}, "allocatable": {}}, [8000]),
        ({"capacity": {GPU: "0"}, "allocatable": {GPU: "0"}}, [0]),
        ({"capacity": {"cpu": "96"}, "allocatable": {"cpu": "96"}}, []),
    ],
    ids=["unhealthy", "not yet offered", "plugin gone", "no GPU node"],
)
def test_node_that_hands_out_none_of_its_gpus_is_told_apart(status, told):
    node = kube.node("n1")
    node["status"] |= status
    assert rows_of(trim_node(node), (), [H100], Devices()) == []
    found = bare_of(trim_node(node), [H100])
    assert [one.troubles for one in found] == [(Trouble("no_gpus", gpus=n),) for n in told]
    assert not any(one.ready or one.gpus for one in found)


def test_long_message_is_cut():
    [found] = without_ready(condition("Ready", "False", message="x" * 5000))
    assert len(found.message) == LONGEST
