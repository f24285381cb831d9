"""The rival ``native`` against the kube-scheduler that it describes, on the same pods and the same nodes.

Pods of 1 to 8 GPUs ask for more than there is: first many at once, each of its own priority, then some of
equal priority one by one; then pods end, one by one. What can be compared is who has a node, and how many
GPUs are free on each. Among equally free nodes Kubernetes draws, so nodes are compared by what is free and
not by name. Seconds are not compared: those of the real scheduler are the machine's. The rival has no
priorities; the order in which it is given pods stands for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from scheduling.cluster.connection.client import Client, configuration_from
from tests.scheduling.kube import add_node, eventually, node
from tests.scheduling.simulation.conftest import make_trace
from workshop.rivals.native import pods_after
from workshop.testbed.control_plane import flags
from workshop.testbed.control_plane.access import kubeconfig_of
from workshop.testbed.control_plane.binaries import find
from workshop.testbed.control_plane.plane import ControlPlane
from workshop.testbed.control_plane.processes import Process

pytestmark = pytest.mark.real

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
SCHEDULER = "spreading"
NODES, PER_NODE = 24, 8
AT_ONCE, ONE_BY_ONE = 150, 60
SETTLED_S = 60.0


class Pod(NamedTuple):
    name: str
    gpus: int
    level: str


class Standing(NamedTuple):
    """Who has a node, and GPUs free by node, in order."""

    seated: set[str]
    free: list[int]


class Cluster:
    """Nodes and pods of this test on the real control plane."""

    def __init__(self, client: Client) -> None:
        self.client = client
        for number in range(NODES):
            add_node(client, node(f"native-{number:02}", PER_NODE, native="yes"))

    def rank(self, level: str, value: int) -> None:
        body = {"metadata": {"name": level}, "value": value, "preemptionPolicy": "Never"}
        self.client.create(PRIORITIES, body)

    def submit(self, pod: Pod) -> None:
        self.client.create(PODS, manifest(pod))

    def seats(self) -> dict[str, tuple[int, int]]:
        """Pod -> number of its node and GPUs, of those that have one."""
        return {
            item["metadata"]["name"]: (number_of(item["spec"]["nodeName"]), gpus_of(item))
            for item in self.client.get(PODS)["items"]
            if item["spec"].get("nodeName")
        }

    def free(self) -> list[int]:
        """GPUs by number of the node."""
        return free_beside(self.seats())

    def standing(self) -> Standing:
        seats = self.seats()
        return Standing(set(seats), sorted(free_beside(seats)))

    def are_refused(self, names: set[str]) -> bool:
        """Whether the scheduler has tried all of them and found no node."""
        refused = {
            item["metadata"]["name"]
            for item in self.client.get(PODS)["items"]
            for condition in item["status"].get("conditions") or []
            if condition.get("reason") == "Unschedulable"
        }
        return names <= refused

    def let_go(self, name: str) -> None:
        self.client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})


def free_beside(seats: dict[str, tuple[int, int]]) -> list[int]:
    free = [PER_NODE] * NODES
    for number, gpus in seats.values():
        free[number] -= gpus
    return free


def manifest(pod: Pod) -> Json:
    limits = {"nvidia.com/gpu": str(pod.gpus)}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    spec = {
        "schedulerName": SCHEDULER,
        "priorityClassName": pod.level,
        "nodeSelector": {"native": "yes"},
        "containers": [container],
    }
    return {"metadata": {"name": pod.name}, "spec": spec}


def number_of(name: str) -> int:
    return int(name.removeprefix("native-"))


def gpus_of(item: Json) -> int:
    return int(item["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])


def drawn(count: int, stem: str, level: str, seed: int) -> list[Pod]:
    sizes = np.random.default_rng(seed).choice([1, 2, 4, 8], count, p=[0.5, 0.2, 0.15, 0.15])
    return [Pod(f"{stem}-{i:03}", int(g), level.format(i)) for i, g in enumerate(sizes)]


def of_rival(waiting: Sequence[Pod], free: list[int]) -> Standing:
    """What ``native`` makes of pods that wait in this order, and of what is free by node."""
    trace = make_trace(*((0, 9_999, pod.gpus, "q") for pod in waiting), per_node=PER_NODE)
    left = np.array(free, dtype=np.int64)
    found = pods_after(trace, left, 0)
    names = {pod.name for pod, at in zip(waiting, found.node, strict=True) if at >= 0}
    return Standing(names, sorted(left.tolist()))


def agree(cluster: Cluster, expected: Standing) -> None:
    """Waits until the scheduler has come to the same, which is where it stops."""

    def seen() -> str:
        there = cluster.standing()
        missing, surplus = expected.seated - there.seated, there.seated - expected.seated
        return f"missing {missing}, only there {surplus}, free {there.free}"

    eventually(lambda: cluster.standing() == expected, SETTLED_S, seen)


@pytest.fixture
def cluster(kubernetes: ControlPlane) -> Iterator[Cluster]:
    client = Client(configuration_from(kubernetes.access.kubeconfig))
    yield Cluster(client)
    client.close()


@pytest.fixture
def scheduler(kubernetes: ControlPlane) -> Iterator[Process]:
    """A second kube-scheduler, not started: what it is to see at once is made before."""
    folder = kubernetes.folder / "spreading"
    folder.mkdir(exist_ok=True)
    config = folder / "scheduler.yaml"
    kubeconfig = kubeconfig_of(kubernetes.folder, "kube-scheduler")
    config.write_text(flags.spreading_scheduler_config(kubeconfig, SCHEDULER))
    command = [find().path("kube-scheduler"), *flags.scheduler(config)]
    process = Process(folder, "spreading-scheduler", command)
    yield process
    process.stop()


def test_native_seats_whom_kube_scheduler_seats_and_spreads_them_alike(
    cluster: Cluster, scheduler: Process
) -> None:
    first = drawn(AT_ONCE, "first", "rank-{}", 7)
    for number, pod in enumerate(first):
        cluster.rank(pod.level, 1_000 - number)
    for pod in sorted(first, key=lambda pod: pod.gpus):
        cluster.submit(pod)
    expected = of_rival(first, [PER_NODE] * NODES)
    assert 0 < len(expected.seated) < len(first)
    scheduler.start()
    agree(cluster, expected)

    then = drawn(ONE_BY_ONE, "then", "equal", 8)
    cluster.rank("equal", 1)
    came = of_rival(then, cluster.free())
    for pod in then:
        cluster.submit(pod)
    held = expected.seated | came.seated
    agree(cluster, Standing(held, came.free))
    waiting = [pod for pod in (*first, *then) if pod.name not in held]
    eventually(lambda: cluster.are_refused({pod.name for pod in waiting}), SETTLED_S)

    for ended in sorted(held)[::6]:
        free, (number, gpus) = cluster.free(), cluster.seats()[ended]
        free[number] += gpus
        cluster.let_go(ended)
        came = of_rival(waiting, free)
        held = (held - {ended}) | came.seated
        agree(cluster, Standing(held, came.free))
        waiting = [pod for pod in waiting if pod.name not in held]
