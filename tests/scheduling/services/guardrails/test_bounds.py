"""What a namespace is held to beside GPUs: pod security, and bounds on CPU, memory and pods."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from scheduling.cluster.connection.client import ConflictError
from scheduling.cluster.guardrails import NamespaceRail
from scheduling.cluster.vocabulary.quantities import mib, milli
from scheduling.models import GpuClass, Queue, Quota
from scheduling.services.clusters import guardrails
from scheduling.services.clusters.namespaces import Machine
from scheduling.services.queues import rows as policies
from tests.scheduling.kube import eventually

from .lab import Lab, Pass, standing

LEVEL = "pod-security.kubernetes.io/enforce"
GIB = 1024
H100 = Machine((96_000, 512 * GIB, 110), {"h100": 8_000})
PLAIN = Machine((64_000, 128 * GIB, 250))
Bounds = tuple[int | None, int | None, int | None]


def rail(lab: Lab, *machines: Machine) -> NamespaceRail:
    rows = policies.load(lab.cluster, at=lab.cluster.now())
    found = guardrails.rails_of(rows, machines).namespaces
    return next(n for n in found if n.name == lab.namespace)


def bounds(lab: Lab, *machines: Machine) -> Bounds:
    found = rail(lab, *machines)
    return found.cpus, found.memory_mib, found.pods


def change(name: str = "research", **fields: Any) -> None:
    Queue.objects.filter(name=name).update(**fields)


def child(lab: Lab, **fields: Any) -> Queue:
    """A queue below ``research`` that works in its namespace."""
    top = Queue.objects.get(name="research")
    fields = {"name": "child", "namespace": lab.namespace, **fields}
    return Queue.objects.create(cluster=lab.cluster, parent=top, **fields)


def test_baseline_is_enforced_where_nobody_says_otherwise(lab: Lab, guarded: Pass) -> None:
    guarded()
    labels = lab.kube.get(lab.home)["metadata"]["labels"]
    for mode in ("enforce", "warn", "audit"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "baseline"
        assert labels[f"pod-security.kubernetes.io/{mode}-version"] == "latest"


def test_level_of_the_queue_reaches_its_namespace(lab: Lab, guarded: Pass) -> None:
    guarded()
    change(pod_security="restricted")
    guarded()
    assert lab.kube.get(lab.home)["metadata"]["labels"][LEVEL] == "restricted"


def test_level_that_somebody_loosens_is_set_again(lab: Lab, guarded: Pass) -> None:
    guarded()
    lab.kube.patch(lab.home, {"metadata": {"labels": {LEVEL: "privileged"}}})
    guarded()
    assert lab.kube.get(lab.home)["metadata"]["labels"][LEVEL] == "baseline"
    assert standing("Namespace").standing == "in_step"


def test_namespace_that_is_given_back_keeps_no_level_of_ours(lab: Lab, guarded: Pass) -> None:
    guarded()
    change(namespace="")
    guarded()
    assert LEVEL not in lab.kube.get(lab.home)["metadata"].get("labels", {})


def test_level_is_inherited_from_the_nearest_queue_that_sets_one(lab: Lab) -> None:
    change(pod_security="restricted", namespace="")
    below = child(lab)
    assert rail(lab).pod_security == "restricted"

    change("child", pod_security="privileged")
    assert rail(lab).pod_security == "privileged"
    Queue.objects.create(cluster=lab.cluster, parent=below, name="deeper", namespace=lab.namespace)
    assert rail(lab).pod_security == "privileged"


def test_strictest_level_counts_where_queues_share_a_namespace(lab: Lab) -> None:
    change(pod_security="privileged")
    change("products", namespace=lab.namespace)
    assert rail(lab).pod_security == "baseline"

    change("products", pod_security="restricted")
    assert rail(lab).pod_security == "restricted"


def test_bounds_follow_from_the_gpus_and_leave_room_for_other_work(lab: Lab) -> None:
    """12 of 24 GPUs: half of three nodes, and the nodes without GPUs, at least as much as one node."""
    assert bounds(lab, H100, H100, H100, PLAIN, PLAIN) == (
        144_000 + 128_000,
        768 * GIB + 512 * GIB,
        165 + 500,
    )


def test_room_for_other_work_is_at_least_a_node(lab: Lab) -> None:
    Quota.objects.filter(queue__name="research").update(nominal_gpus=1000, borrowing_limit_gpus=0)
    assert bounds(lab, H100, H100) == (12_000 + 96_000, 64 * GIB + 512 * GIB, 14 + 110)


def test_bounds_never_pass_the_cluster(lab: Lab) -> None:
    assert bounds(lab, H100) == (96_000, 512 * GIB, 110)


def test_unlimited_gpus_are_bounded_by_the_whole_cluster(lab: Lab) -> None:
    Quota.objects.filter(queue__name="research").update(borrowing_limit_gpus=None)
    assert bounds(lab, H100, H100, PLAIN) == (256_000, 1152 * GIB, 470)


def test_class_without_a_quota_is_unlimited_as_its_gpus_are(lab: Lab) -> None:
    GpuClass.objects.create(cluster=lab.cluster, name="a100", node_labels={"gpu": "a100"})
    assert bounds(lab, H100, H100, H100)[0] == 288_000


def test_nothing_is_derived_while_no_node_is_known(lab: Lab) -> None:
    assert bounds(lab) == (None, None, None)


def test_bounds_that_are_set_take_the_place_of_derived_ones(lab: Lab) -> None:
    change(max_cpus=20_000, max_pods=7)
    assert bounds(lab, H100, H100, H100) == (20_000, 768 * GIB + 512 * GIB, 7)


def test_least_bound_along_the_line_counts(lab: Lab) -> None:
    change(max_cpus=20_000, namespace="")
    child(lab, max_cpus=40_000)
    assert bounds(lab, H100)[0] == 20_000


def test_bounds_of_queues_that_share_a_namespace_add_up(lab: Lab) -> None:
    change(max_cpus=20_000)
    change("products", namespace=lab.namespace, max_cpus=5_000)
    assert bounds(lab, H100)[0] == 25_000


@pytest.mark.parametrize("bound", ["max_cpus", "max_memory_mib", "max_pods"])
def test_bound_of_nothing_is_no_derived_one(lab: Lab, bound: str) -> None:
    change(**{bound: 0})
    assert 0 in bounds(lab, H100)


def test_pod_that_states_nothing_gets_small_requests_and_counts(lab: Lab, guarded: Pass) -> None:
    guarded()
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain"},
        "spec": {"containers": [{"name": "main", "image": "work"}]},
    }

    def made() -> Any:
        path = f"{lab.home}/pods"
        return lab.kube.request("POST", path, query={"dryRun": "All"}, body=body)

    with suppress(ConflictError):  # its controller may have been faster
        lab.kube.create(f"{lab.home}/serviceaccounts", {"metadata": {"name": "default"}})
    found = eventually(lambda: made()["spec"]["containers"][0]["resources"])
    assert found == {"requests": {"cpu": "10m", "memory": "32Mi"}}


def test_bounds_reach_the_quota_and_follow_the_nodes(lab: Lab, guarded: Pass) -> None:
    change(max_pods=30)
    guarded()
    hard = lab.hard()
    assert (hard["pods"], milli(hard["requests.cpu"])) == ("30", 192_000)
    assert mib(hard["requests.memory"]) == 1024 * GIB
