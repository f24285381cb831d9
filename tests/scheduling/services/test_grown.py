"""Work that comes to ask for more than it was admitted with, by hand or by an autoscaler of its own."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import Cluster, Quota, State
from scheduling.services.cycle.project import missing_members
from tests.scheduling.kube import World
from tests.scheduling.manifests import MANIFESTS, ray_cluster, template
from tests.scheduling.operators import Operator, adapter_of, install

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def site(world: World) -> World:
    """The cluster with the definitions of every kind installed; nobody borrows."""
    install(world.kube)
    Quota.objects.update(borrowing_limit_gpus=0)
    return world


def placed(site: World, manifest: Json) -> Operator:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    site.kube.create(adapter_of(kind).path("default", ""), manifest)
    return Operator(site.kube, kind, name)


def runs(site: World, operator: Operator, name: str = "w1") -> None:
    def up() -> bool:
        operator.act()
        return site.row(name).state == State.RUNNING

    site.cycles_until(up)


def suspended(operator: Operator) -> bool:
    obj = operator.read()
    return adapter_of(obj["kind"]).is_suspended(obj)


def autoscaled(least: int, most: int) -> Json:
    manifest = ray_cluster("w1", gpus=2, least=least, most=most)
    manifest["spec"]["enableInTreeAutoscaling"] = True
    manifest["spec"]["workerGroupSpecs"][0]["replicas"] = least
    return manifest


def make_workers(site: World, operator: Operator, count: int) -> None:
    """What KubeRay makes of the replicas that Ray's autoscaler asks for."""
    wanted = dict(operator._wanted(operator.read()))
    for name in [f"w1-workers-{number}" for number in range(count)]:
        if name not in {p["metadata"]["name"] for p in operator.pods()}:
            site.kube.create(PODS, wanted[name])


def test_ray_cluster_that_its_autoscaler_keeps_small_runs_and_keeps_its_quota(
    site: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing_members, "UNSEEN_PODS_S", 0.5)
    monkeypatch.setattr(missing_members, "SETTLE_S", 0.5)
    Cluster.objects.update(stale_gang_grace_s=0)
    operator = placed(site, autoscaled(1, 4))
    site.cycles_until(lambda: not suspended(operator))
    make_workers(site, operator, 1)
    site.cycles_until(lambda: site.row("w1").state == State.RUNNING)

    site.job("w2", gpus=2)
    site.cycles_until(lambda: site.row("w2").reason == "at_limit")
    make_workers(site, operator, 4)
    site.cycles_until(lambda: sum(site.row("w1").placement.values()) == 4)
    assert not suspended(operator)
    assert site.read("w2")["spec"]["suspend"]


def test_ray_cluster_whose_maximum_is_raised_is_cut_back(site: World) -> None:
    operator = placed(site, autoscaled(1, 2))
    runs(site, operator)
    (group,) = operator.read()["spec"]["workerGroupSpecs"]
    raised = group | {"maxReplicas": 8, "replicas": 6}
    site.kube.patch(operator.path, {"spec": {"workerGroupSpecs": [raised]}})
    site.cycle()

    (group,) = operator.read()["spec"]["workerGroupSpecs"]
    assert (group["minReplicas"], group["replicas"], group["maxReplicas"]) == (1, 2, 2)
    assert not suspended(operator)
    site.cycle()
    assert site.cycle().written == 0


SWOLLEN = ("Deployment", "LeaderWorkerSet", "MPIJob", "PaddleJob", "PyTorchJob", "RayCluster")


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("kind", SWOLLEN)
def test_running_work_whose_pods_are_made_to_ask_for_more_gpus_waits_anew(
    site: World, kind: str, before: int
) -> None:
    operator = placed(site, MANIFESTS[kind]("w1", before))
    runs(site, operator)
    site.kube.patch(operator.path, {"spec": asking(operator.read(), 8)})
    site.cycle()

    assert suspended(operator)
    assert "Resuspended" in site.events("w1")
    operator.act()
    site.cycles_until(lambda: site.row("w1").state == State.REQUEUED)
    site.cycles_until(lambda: site.row("w1").reason in ("at_limit", "never_fits"))
    assert site.row("w1").gpus == 8000


def asking(obj: Json, gpus: int) -> Json:
    """The part of the spec by which the pods of its workers ask for ``gpus``."""
    made, spec = template(gpus), obj["spec"]
    if obj["kind"] == "Deployment":
        return {"template": made}
    if obj["kind"] == "LeaderWorkerSet":
        return {"leaderWorkerTemplate": {"workerTemplate": made}}
    if obj["kind"] == "RayCluster":
        (group,) = spec["workerGroupSpecs"]
        return {"workerGroupSpecs": [group | {"template": made}]}
    roles = next(field for field in spec if field.endswith("ReplicaSpecs"))
    workers = {name: {"template": made} for name in spec[roles] if name != "Launcher"}
    return {roles: workers}


def test_gang_that_cannot_be_cut_back_to_what_it_was_waits_anew(site: World) -> None:
    operator = placed(site, MANIFESTS["LeaderWorkerSet"]("w1"))
    runs(site, operator)
    site.kube.patch(operator.path, {"spec": {"leaderWorkerTemplate": {"size": 5}}})
    site.cycle()

    assert suspended(operator)
    assert "weir.dev/hold" not in operator.read()["metadata"]["annotations"]
    operator.act()
    site.cycles_until(lambda: site.row("w1").eviction_count == 1)
    runs(site, operator)
    assert site.row("w1").members == 5


def test_size_changed_while_it_runs_is_a_step_that_is_charged(world: World) -> None:
    job = world.manifest("wide", pods=2)
    job["metadata"].setdefault("annotations", {})["weir.dev/min-members"] = "1"
    world.kube.create("/apis/batch/v1/namespaces/default/jobs", job)
    world.cycles_until(lambda: world.row("wide").state == State.RUNNING)
    world.edit("wide", {"spec": {"parallelism": 1}})
    world.cycles_until(lambda: world.row("wide").members == 1)

    row = world.row("wide")
    step = row.transitions.last()
    assert step is not None
    assert (step.from_state, step.to_state, step.gpus) == (State.RUNNING, State.RUNNING, 1000)
    assert (row.held_since, step.gpu_class) == (step.at, row.gpu_class)
