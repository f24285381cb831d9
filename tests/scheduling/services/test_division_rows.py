"""A Job that ran over two GPU classes before Weir came counts in both."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import Cluster, ClusterMode, GpuClass, Node, Queue, Quota, State
from scheduling.services.snapshot import build as snapshots
from tests.scheduling.kube import JOBS, World, add_node, node
from tests.scheduling.manifests import node_affinity

Json = dict[str, Any]


def asking(world: World, name: str, *classes: str, pods: int = 1) -> Json:
    job = world.manifest(name, gpus=8, pods=pods)
    job["metadata"]["annotations"]["weir.dev/gpu-classes"] = ",".join(classes)
    return job


def running(world: World, *names: str) -> bool:
    return all(world.row(name).state == State.RUNNING for name in names)


@pytest.fixture
def across(world: World) -> World:
    """``old`` runs with 8 GPUs on ``n1`` (h100) and 8 on ``a1`` (a100), seen before enforcing began.

    Its queue may hold 16 h100 and 8 a100; ``n2`` and ``a2`` are free.
    """
    gpu_class = GpuClass.objects.create(
        cluster=world.cluster, name="a100", node_labels={"gpu": "a100"}
    )
    quota = Quota.objects.get(queue__name="research")
    Quota.objects.filter(pk=quota.pk).update(nominal_gpus=16000, borrowing_limit_gpus=0)
    quota.pk, quota.gpu_class, quota.borrowing_limit_gpus = None, gpu_class, 0
    quota.save()
    for name in ("a1", "a2"):
        add_node(world.kube, node(name, gpu="a100"))
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    job = asking(world, "old", "h100", "a100", pods=2)
    job["spec"]["suspend"] = False
    here = node_affinity("kubernetes.io/hostname", "n1", "a1")
    job["spec"]["template"]["spec"]["affinity"] = here
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: running(world, "old"))
    return world


def enforced(world: World) -> None:
    Cluster.objects.update(mode=ClusterMode.ENFORCE)
    world.cycles_until(lambda: "weir.dev/gpu-class" in world.notes("old"))


def allocated() -> dict[str, int]:
    return dict(Node.objects.values_list("name", "allocated_gpus"))


def test_gpus_count_on_the_nodes_where_they_are_held(across: World) -> None:
    assert allocated() == {"n1": 8000, "n2": 0, "a1": 8000, "a2": 0}
    held = {
        w.gpu_class: sum(w.placement.values()) * w.gpus
        for w in snapshots.live(across.cluster).workloads
    }
    assert held == {"h100": 8000, "a100": 8000}

    enforced(across)
    across.cycle()
    assert allocated() == {"n1": 8000, "n2": 0, "a1": 8000, "a2": 0}
    assert across.cycle().written == 0


def test_limits_of_both_classes_hold(across: World) -> None:
    enforced(across)
    across.kube.create(JOBS, asking(across, "more-a100", "a100"))
    across.kube.create(JOBS, asking(across, "more-h100", "h100"))
    across.cycles_until(lambda: running(across, "more-h100"))

    across.cycles_until(lambda: across.row("more-a100").reason == "at_limit")
    assert across.read("more-a100")["spec"]["suspend"]


def test_it_is_evicted_whole_and_starts_again_on_one_class(across: World) -> None:
    enforced(across)
    Queue.objects.filter(name="research").update(stop="drain")
    across.cycles_until(lambda: across.row("old").state == State.REQUEUED)
    across.cycles_until(lambda: set(allocated().values()) == {0})
    terms = {"nodeAffinity": None}
    across.edit("old", {"spec": {"template": {"spec": {"affinity": terms}}}})
    Queue.objects.filter(name="research").update(stop="none")
    across.cycles_until(lambda: running(across, "old"))

    assert across.row("old").placement == {"n1": 1, "n2": 1}
