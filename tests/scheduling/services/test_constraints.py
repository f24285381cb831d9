"""What kube-scheduler checks of nodes beside CPUs, memory and GPUs, as plans read it: each is honoured at the
first start, and named where work waits for it.

An empty cluster is filled from n1 on, so that is where the plan has the first that may go anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from scheduling.cluster.connection.client import NotFoundError
from scheduling.models import State
from tests.scheduling.kube import JOBS, World, add_node, node

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
CARD = "rdma/hca"
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
RANGES = "/api/v1/namespaces/default/limitranges"


def bound(world: World, name: str, gpus: int = 1, pods: int = 1, **spec: Any) -> None:
    job = world.manifest(name, gpus=gpus, pods=pods)
    template = job["spec"]["template"]
    template["metadata"] = {"labels": spec.pop("labels", {})}
    ports = spec.pop("ports", None)
    template["spec"] |= spec
    if ports:
        template["spec"]["containers"][0]["ports"] = ports
    world.kube.create(JOBS, job)


def outsider(world: World, name: str, host: str, labels: Json | None = None, **more: Any) -> None:
    """A pod outside the queues that runs on ``host``."""
    container = {"name": "main", "image": "x", **more}
    body = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"nodeName": host, "containers": [container]},
    }
    world.kube.create(PODS, body)


def offers(world: World, host: str, **amounts: str) -> None:
    """The label has a node made anew for the next test on a server that stays."""
    world.kube.patch(f"/api/v1/nodes/{host}", {"metadata": {"labels": {"altered": "yes"}}})
    parts = dict.fromkeys(("capacity", "allocatable"), amounts)
    world.kube.patch(f"/api/v1/nodes/{host}/status", {"status": parts})


def started(world: World, *names: str) -> None:
    """All run, each at its first start."""
    world.cycles_until(lambda: all(world.row(name).state == State.RUNNING for name in names))
    assert all("weir.dev/start-failures" not in world.notes(name) for name in names)


def waits(world: World, name: str) -> str:
    """The sentence of one that is not let in by cycles that let in whatever they can."""
    for _ in range(3):
        world.cycle()
    assert world.read(name)["spec"]["suspend"]
    return world.row(name).sentence


def affinity(kind: str, key: str, **labels: str) -> Json:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


PORT = [{"containerPort": 80, "hostPort": 8080}]


def test_members_with_one_host_port_never_share_a_node_and_the_next_waits_for_it(
    world: World,
) -> None:
    bound(world, "w1", pods=2, ports=PORT)
    started(world, "w1")
    bound(world, "w2", ports=PORT)

    assert world.row("w1").placement == {"n1": 1, "n2": 1}
    assert "it needs 1 × host port 8080/TCP as well" in waits(world, "w2")
    assert world.row("w2").reason == "no_free_other"


def test_host_port_of_a_pod_outside_the_queues_is_left_alone(world: World) -> None:
    outsider(world, "web", "n1", ports=PORT)
    bound(world, "w1", ports=PORT)
    started(world, "w1")

    assert world.row("w1").placement == {"n2": 1}


def test_pod_of_its_hosts_network_takes_the_ports_that_it_names(world: World) -> None:
    bound(world, "w1", pods=2, hostNetwork=True, ports=[{"containerPort": 9000, "hostPort": 9000}])
    started(world, "w1")

    assert world.row("w1").placement == {"n1": 1, "n2": 1}


def test_node_takes_as_many_pods_as_it_says(world: World) -> None:
    """Each takes two, one of which is outside the queues."""
    for host in ("n1", "n2"):
        offers(world, host, pods="2")
        outsider(world, f"daemon-on-{host}", host)
    bound(world, "w1", pods=2)
    started(world, "w1")
    bound(world, "w2")

    assert world.row("w1").placement == {"n1": 1, "n2": 1}
    assert "it needs 1 × places for pods as well" in waits(world, "w2")


def test_devices_that_others_hold_are_not_planned_with(world: World) -> None:
    for host in ("n1", "n2"):
        offers(world, host, **{CARD: "1"})
    limits = {CARD: "1"}
    outsider(world, "nic", "n1", resources={"limits": limits, "requests": limits})
    job = world.manifest("w1")
    resources = job["spec"]["template"]["spec"]["containers"][0]["resources"]
    for part in ("limits", "requests"):
        resources[part] |= limits
    world.kube.create(JOBS, job)
    started(world, "w1")
    job["metadata"]["name"] = "w2"
    world.kube.create(JOBS, job)

    assert world.row("w1").placement == {"n2": 1}
    assert f"it needs 1 × {CARD} as well" in waits(world, "w2")


def test_local_storage_is_added_up(world: World) -> None:
    for host in ("n1", "n2"):
        offers(world, host, **{"ephemeral-storage": "100Gi"})
    job = world.manifest("w1", pods=2)
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"]["ephemeral-storage"] = "60Gi"
    world.kube.create(JOBS, job)
    started(world, "w1")
    job["metadata"]["name"] = "w2"
    world.kube.create(JOBS, job)

    assert world.row("w1").placement == {"n1": 1, "n2": 1}
    assert "MiB of ephemeral-storage as well" in waits(world, "w2")


def test_members_that_keep_their_own_kind_away_go_one_to_a_node(world: World) -> None:
    rules = affinity("podAntiAffinity", HOST, app="train")
    bound(world, "w1", pods=2, affinity=rules, labels={"app": "train"})
    started(world, "w1")
    bound(world, "w2", affinity=rules, labels={"app": "train"})

    assert world.row("w1").placement == {"n1": 1, "n2": 1}
    assert "node apart from pods with app=train in default" in waits(world, "w2")


def test_member_keeps_off_nodes_of_pods_that_it_is_to_be_apart_from(world: World) -> None:
    outsider(world, "loud", "n1", {"app": "loud"})
    bound(world, "w1", affinity=affinity("podAntiAffinity", HOST, app="loud"))
    started(world, "w1")

    assert world.row("w1").placement == {"n2": 1}


def test_member_that_each_node_keeps_away_says_from_whom_and_starts_once_they_are_gone(
    world: World,
) -> None:
    for host in ("n1", "n2"):
        outsider(world, f"loud-on-{host}", host, {"app": "loud"})
    bound(world, "w1", affinity=affinity("podAntiAffinity", HOST, app="loud"))

    said = waits(world, "w1")
    assert "anti-affinity keeps it apart from pods with app=loud" in said
    assert world.row("w1").reason == "gang_incomplete"
    world.kube.delete(f"{PODS}/loud-on-n2")
    started(world, "w1")
    assert world.row("w1").placement == {"n2": 1}


def test_member_goes_to_the_zone_of_pods_that_it_is_to_be_near(world: World) -> None:
    for host, zone in (("n1", "a"), ("n2", "b")):
        world.kube.patch(f"/api/v1/nodes/{host}", {"metadata": {"labels": {ZONE: zone}}})
    bound(world, "w1", affinity=affinity("podAffinity", ZONE, app="data"))
    assert "wants it near pods with app=data" in waits(world, "w1")

    outsider(world, "data", "n2", {"app": "data"})
    started(world, "w1")
    assert world.row("w1").placement == {"n2": 1}


def test_gang_that_is_to_be_near_its_own_kind_stays_in_one_zone(world: World) -> None:
    """Six GPUs are free in zone a and eight in zone b."""
    for host, zone in (("n1", "a"), ("n2", "b")):
        world.kube.patch(f"/api/v1/nodes/{host}", {"metadata": {"labels": {ZONE: zone}}})
    world.job("first", gpus=2)
    started(world, "first")
    bound(
        world, "w1", gpus=1, pods=7,
        affinity=affinity("podAffinity", ZONE, app="train"), labels={"app": "train"},
    )  # fmt: skip
    started(world, "w1")

    assert world.row("w1").placement == {"n2": 7}


@pytest.fixture
def zones(world: World) -> Iterator[World]:
    for host, zone in (("n1", "a"), ("n2", "b")):
        world.kube.patch(f"/api/v1/nodes/{host}", {"metadata": {"labels": {ZONE: zone}}})
    yield world
    for path in (CLAIMS, VOLUMES, CLASSES):
        for name in [item["metadata"]["name"] for item in world.kube.get(path)["items"]]:
            world.kube.delete(f"{path}/{name}")
            with suppress(NotFoundError):  # On a server that keeps volumes for who uses them.
                world.kube.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})


def mounts(claim: str) -> Json:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def claim(world: World, **spec: Any) -> None:
    resources = {"requests": {"storage": "1Gi"}}
    body = {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}
    world.kube.create(CLAIMS, {"metadata": {"name": "data"}, "spec": body})


def test_pods_go_where_their_volume_is(zones: World) -> None:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
    disk = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    zones.kube.create(VOLUMES, {"metadata": {"name": "disk"}, "spec": disk})
    claim(zones, volumeName="disk", storageClassName="")
    bound(zones, "w1", gpus=6, **mounts("data"))
    started(zones, "w1")
    bound(zones, "w2", gpus=4, **mounts("data"))

    assert zones.row("w1").placement == {"n2": 1}
    assert waits(zones, "w2").startswith("Its volumes let it run on 1 of 2 nodes of h100")


def test_pods_go_where_the_class_of_their_volume_makes_it(zones: World) -> None:
    topology = {"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}
    made = {
        "metadata": {"name": "zonal"},
        "provisioner": "example.com/disk",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [topology],
    }
    zones.kube.create(CLASSES, made)
    claim(zones, storageClassName="zonal")
    bound(zones, "w1", **mounts("data"))
    started(zones, "w1")

    assert zones.row("w1").placement == {"n2": 1}


def test_what_a_limit_range_has_pods_ask_for_is_planned_with(world: World) -> None:
    """A pod is given 60 of its node's 96 CPUs."""
    item = {"type": "Container", "defaultRequest": {"cpu": "60"}}
    world.kube.create(RANGES, {"metadata": {"name": "large"}, "spec": {"limits": [item]}})
    job = world.manifest("w1", pods=2)
    resources = job["spec"]["template"]["spec"]["containers"][0]["resources"]
    for part in ("requests", "limits"):
        resources.get(part, {}).pop("cpu", None)
    world.kube.create(JOBS, job)
    started(world, "w1")

    assert world.row("w1").cpus == 60_000
    assert world.row("w1").placement == {"n1": 1, "n2": 1}


def test_workload_that_takes_nothing_else_has_nothing_else_planned(world: World) -> None:
    made = node("n3")
    add_node(world.kube, made)
    world.job("w1", gpus=8)
    started(world, "w1")

    assert world.row("w1").placement == {"n1": 1}
