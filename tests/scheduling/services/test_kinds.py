"""Every kind of work lives the same life: its turn, its pods, an eviction, an end, and then silence."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import Cluster, ClusterMode, GpuClass, Outcome, Queue, State
from scheduling.services.explain.sooner import Reach, plan_now
from tests.scheduling.kube import World, eventually
from tests.scheduling.manifests import MANIFESTS, SUCCEEDED, ray_cluster, ray_job, template
from tests.scheduling.operators import Operator, adapter_of, install

S = State
KINDS = sorted(MANIFESTS)


@pytest.fixture
def site(world: World) -> World:
    """The cluster with the definitions of every kind installed."""
    install(world.kube)
    return world


def submitted(site: World, kind: str, name: str = "w1") -> Operator:
    return placed(site, kind, MANIFESTS[kind](name))


def placed(site: World, kind: str, manifest: dict[str, Any]) -> Operator:
    site.kube.create(adapter_of(kind).path("default", ""), manifest)
    return Operator(site.kube, kind, manifest["metadata"]["name"])


def runs(site: World, operator: Operator, name: str = "w1") -> None:
    def up() -> bool:
        operator.act()
        return site.row(name).state == S.RUNNING

    site.cycles_until(up)


def suspended(operator: Operator, kind: str) -> bool:
    return adapter_of(kind).is_suspended(operator.read())


@pytest.mark.parametrize("kind", KINDS)
def test_work_of_every_kind_runs_on_its_class_when_its_turn_comes(site: World, kind: str) -> None:
    operator = submitted(site, kind)
    runs(site, operator)

    row = site.row("w1")
    assert (row.kind, row.gpus, row.min_members, row.members) == (kind, 1000, 2, 2)
    assert row.gpu_class is not None
    assert row.gpu_class.name == "h100"
    assert sum(row.placement.values()) == 2
    carrying = [p for p in operator.pods() if "nvidia.com/gpu" in str(p["spec"]["containers"])]
    for pod in carrying:
        steered = str(pod["spec"].get("affinity")) + str(pod["spec"].get("nodeSelector"))
        assert "h100" in steered


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_work_of_every_kind_is_told_what_would_start_it(site: World, kind: str) -> None:
    Queue.objects.filter(name="research").update(max_running=0)
    submitted(site, kind)
    site.cycles_until(lambda: site.row("w1").reason == "queue_at_job_limit")

    work = site.row("w1")
    found = next(plan_now(work.cluster, [(work, Reach(["products"]))])).found
    assert [(each["change"], each["value"]) for each in found] == [
        ("queue", "products"),
        ("queue_workloads", 1),
    ]


@pytest.mark.real
def test_job_that_a_cron_job_made_is_a_workload_of_its_own(world: World) -> None:
    jobs = "/apis/batch/v1/namespaces/default"
    template = {"spec": world.manifest("w1")["spec"]}
    spec = {"schedule": "0 3 1 1 *", "suspend": True, "jobTemplate": template}
    cron = world.kube.create(f"{jobs}/cronjobs", {"metadata": {"name": "nightly"}, "spec": spec})
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "controller": True}
    made = world.manifest("w1")
    made["metadata"]["ownerReferences"] = [{**owner, "uid": cron["metadata"]["uid"]}]
    world.kube.create(f"{jobs}/jobs", made)

    world.cycles_until(lambda: world.row("w1").state == S.RUNNING)
    world.kube.delete(f"{jobs}/cronjobs/nightly", {"propagationPolicy": "Background"})


@pytest.mark.parametrize("kind", KINDS)
def test_work_of_every_kind_waits_while_its_queue_is_full(site: World, kind: str) -> None:
    Queue.objects.filter(name="research").update(stop="hold")
    operator = submitted(site, kind)
    site.cycle()
    operator.act()

    assert suspended(operator, kind)
    assert operator.pods() == []
    assert operator.read()["metadata"]["annotations"]["weir.dev/reason"]


@pytest.mark.parametrize("kind", KINDS)
def test_work_of_every_kind_is_evicted_and_admitted_again(site: World, kind: str) -> None:
    operator = submitted(site, kind)
    runs(site, operator)
    Queue.objects.filter(name="research").update(stop="drain")
    site.cycle()
    assert suspended(operator, kind)
    operator.act()
    site.cycles_until(lambda: site.row("w1").state == S.REQUEUED)

    Queue.objects.filter(name="research").update(stop="none")
    runs(site, operator)
    assert site.row("w1").eviction_count == 1
    assert site.row("w1").members == 2


@pytest.mark.parametrize("kind", KINDS)
def test_evicted_work_of_every_kind_stands_there_as_it_was_written(site: World, kind: str) -> None:
    operator = submitted(site, kind)
    written = operator.read()["spec"]
    runs(site, operator)
    assert operator.read()["spec"] != written
    Queue.objects.filter(name="research").update(stop="drain")

    def is_back() -> bool:
        operator.act()
        return bool(operator.read()["spec"] == written)

    site.cycles_until(is_back)
    site.cycle()
    assert site.cycle().written == 0
    Queue.objects.filter(name="research").update(stop="none")
    runs(site, operator)


@pytest.mark.parametrize("kind", sorted(SUCCEEDED))
def test_work_of_every_kind_that_ends_is_finished(site: World, kind: str) -> None:
    operator = submitted(site, kind)
    runs(site, operator)
    operator.say(SUCCEEDED[kind])
    site.cycle()

    assert (site.row("w1").state, site.row("w1").outcome) == (S.FINISHED, Outcome.SUCCEEDED)


@pytest.mark.parametrize("kind", KINDS)
def test_settled_work_of_every_kind_is_left_alone(site: World, kind: str) -> None:
    operator = submitted(site, kind)
    runs(site, operator)
    site.cycle()
    version = operator.read()["metadata"]["resourceVersion"]

    assert site.cycle().written == 0
    assert operator.read()["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize("kind", KINDS)
def test_work_of_every_kind_that_jumps_the_queue_is_suspended_again(site: World, kind: str) -> None:
    Queue.objects.filter(name="research").update(stop="hold")
    site.cycle()
    manifest = MANIFESTS[kind]("w1")
    wanted = manifest["metadata"].pop("annotations", {}).get("weir.dev/replicas")
    if wanted:
        manifest["spec"]["replicas"] = int(wanted)
    elif "runPolicy" in manifest["spec"]:
        manifest["spec"]["runPolicy"]["suspend"] = False
    else:
        manifest["spec"]["suspend"] = False
    operator = placed(site, kind, manifest)
    site.cycle()
    assert suspended(operator, kind)

    Queue.objects.filter(name="research").update(stop="none")
    runs(site, operator)
    assert site.row("w1").members == 2


def grown(kind: str) -> dict[str, Any]:
    """The patch by which somebody doubles the workers of an object of ``kind``."""
    spec = MANIFESTS[kind]("w1")["spec"]
    if kind == "LeaderWorkerSet":
        return {"spec": {"replicas": 2}}
    if kind == "RayCluster":
        (group,) = spec["workerGroupSpecs"]
        return {"spec": {"workerGroupSpecs": [group | {"numOfHosts": 2, "replicas": 2}]}}
    roles = next(field for field in spec if field.endswith("ReplicaSpecs"))
    return {"spec": {roles: {"Worker": {"replicas": 4}}}}


@pytest.mark.parametrize(
    "kind", ["LeaderWorkerSet", "MPIJob", "PaddleJob", "PyTorchJob", "RayCluster"]
)
def test_work_of_fixed_size_made_larger_by_hand_is_cut_back(site: World, kind: str) -> None:
    manifest = MANIFESTS[kind]("w1")
    if kind == "RayCluster":  # Hosts come and go together, so plans do not size it.
        (group,) = manifest["spec"]["workerGroupSpecs"]
        group |= {"numOfHosts": 2, "replicas": 1, "minReplicas": 1, "maxReplicas": 4}
    operator = placed(site, kind, manifest)
    runs(site, operator)
    before = adapter_of(kind).observe(operator.read(), (), ()).members
    site.kube.patch(adapter_of(kind).path("default", "w1"), grown(kind))
    assert adapter_of(kind).observe(operator.read(), (), ()).members > before
    site.cycle()

    assert adapter_of(kind).observe(operator.read(), (), ()).members == before
    assert not suspended(operator, kind)
    assert "Resized" in site.events("w1")


@pytest.mark.parametrize("kind", KINDS)
def test_manifest_of_every_kind_is_made_to_wait(kind: str) -> None:
    adapter = adapter_of(kind)
    assert adapter.is_suspended(adapter.queued(MANIFESTS[kind]("w1")))


def test_observed_cluster_is_not_written_to_whatever_the_kind(site: World) -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    operators = [submitted(site, kind, f"w-{kind.lower()}") for kind in KINDS]
    versions = [o.read()["metadata"]["resourceVersion"] for o in operators]
    site.cycle()

    assert [o.read()["metadata"]["resourceVersion"] for o in operators] == versions


def test_kinds_of_one_name_are_told_apart(site: World) -> None:
    cluster, job = submitted(site, "RayCluster", "same"), submitted(site, "JobSet", "same")
    site.job("same", gpus=1)
    site.cycle()

    assert not suspended(cluster, "RayCluster")
    assert not suspended(job, "JobSet")
    assert not site.read("same")["spec"]["suspend"]


def test_cluster_that_a_ray_job_makes_is_a_part_of_it(site: World) -> None:
    job = placed(site, "RayJob", ray_job("w1"))
    site.cycle()
    made = ray_cluster("w1-raycluster")
    made["spec"]["suspend"] = False
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "name": "w1",
            "uid": job.read()["metadata"]["uid"],
            "controller": True,
        }
    ]
    cluster = placed(site, "RayCluster", made)
    runs(site, cluster)

    assert not suspended(cluster, "RayCluster")
    assert site.row("w1").kind == "RayJob"
    assert not type(site.row("w1")).objects.filter(name="w1-raycluster").exists()


def test_workers_of_a_ray_cluster_are_sized_by_the_plan(site: World) -> None:
    operator = placed(site, "RayCluster", ray_cluster("w1", gpus=4, least=1, most=8))
    runs(site, operator)

    row, spec = site.row("w1"), operator.read()["spec"]
    assert (row.min_members, row.max_members) == (1, 8)
    assert spec["workerGroupSpecs"][0]["replicas"] == row.members <= 4


def led_by_one(manifest: dict[str, Any]) -> dict[str, Any]:
    """A Ray cluster whose head has one GPU."""
    manifest["spec"]["headGroupSpec"]["template"] = template(1)
    return manifest


def test_roles_with_different_gpus_run_as_one_gang_that_holds_what_they_take(site: World) -> None:
    operator = placed(site, "RayCluster", led_by_one(ray_cluster("w1", gpus=4)))
    runs(site, operator)

    row = site.row("w1")
    assert (row.gpus, row.min_members, row.members) == (1000, 9, 9)
    assert row.shapes == [
        {"roles": ["head"], "pods": 1, "gpus": 1},
        {"roles": ["workers"], "pods": 2, "gpus": 4},
    ]
    assert sum(row.placement.values()) == 9
    assert {pod["spec"]["nodeName"] for pod in operator.pods()} <= row.placement.keys()


def test_workers_beside_a_head_of_another_size_grow_and_shrink_by_the_plan(site: World) -> None:
    operator = placed(site, "RayCluster", led_by_one(ray_cluster("w1", gpus=2, least=1, most=6)))

    def workers() -> int:
        operator.act()
        return int(operator.read()["spec"]["workerGroupSpecs"][0]["replicas"])

    def holds(pods: int) -> bool:
        return workers() == pods and site.row("w1").members == 1 + 2 * pods

    runs(site, operator)
    assert holds(6)
    assert site.row("w1").shapes[1] == {"roles": ["workers"], "pods": 6, "pods_min": 1, "gpus": 2}
    assert [now for _, now in site.row("w1").shapes_now] == [1, 6]

    site.job("owed", gpus=2, pods=3, queue="products")
    site.cycles_until(lambda: holds(4) and site.row("owed").state == S.RUNNING)
    assert (site.row("w1").state, site.row("w1").eviction_count) == (S.RUNNING, 0)
    assert (site.row("w1").pod_count, site.row("w1").allocated_gpus) == (5, 9000)

    site.edit("owed", {"spec": {"suspend": True}})
    site.cycles_until(lambda: holds(6))


def test_gang_of_unlike_members_is_evicted_whole_and_starts_again_as_written(site: World) -> None:
    operator = placed(site, "RayCluster", led_by_one(ray_cluster("w1", gpus=4)))
    runs(site, operator)
    Queue.objects.filter(name="research").update(stop="drain")
    site.cycle()
    assert suspended(operator, "RayCluster")
    operator.act()
    site.cycles_until(lambda: site.row("w1").state == S.REQUEUED)

    Queue.objects.filter(name="research").update(stop="none")
    runs(site, operator)
    assert (site.row("w1").eviction_count, site.row("w1").members) == (1, 9)
    asked = [pod["spec"]["containers"][0]["resources"]["limits"] for pod in operator.pods()]
    assert sorted(each["nvidia.com/gpu"] for each in asked) == ["1", "4", "4"]


def test_job_set_with_parts_on_different_classes_waits_with_a_remedy(site: World) -> None:
    GpuClass.objects.create(cluster=site.cluster, name="a100", node_labels={"gpu": "a100"})
    manifest = MANIFESTS["JobSet"]("w1")
    for part, gpu in zip(manifest["spec"]["replicatedJobs"], ("a100", "h100"), strict=True):
        pods = part["template"]["spec"]
        pods["template"] = template(1, restartPolicy="Never", nodeSelector={"gpu": gpu})
    operator = placed(site, "JobSet", manifest)
    site.cycles_until(lambda: site.row("w1").reason == "never_fits")

    assert suspended(operator, "JobSet")
    assert "GPUs of different classes" in site.row("w1").sentence


MANAGED = [kind for kind in ("Job", *KINDS) if kind not in ("Deployment", "LeaderWorkerSet")]
ELSEWHERE = "kueue.x-k8s.io/multikueue"


def managed(site: World, kind: str, controller: str) -> dict[str, Any]:
    manifest = site.manifest("w1") if kind == "Job" else MANIFESTS[kind]("w1")
    spec = manifest["spec"]
    spec.get("runPolicy", spec)["managedBy"] = controller
    return manifest


@pytest.mark.parametrize("kind", MANAGED)
def test_work_that_another_controller_runs_is_left_to_it(site: World, kind: str) -> None:
    operator = placed(site, kind, managed(site, kind, ELSEWHERE))
    site.cycles_until(lambda: site.row("w1").reason == "never_fits")
    assert suspended(operator, kind)
    assert f"managed by {ELSEWHERE}" in site.row("w1").sentence

    spec = operator.read()["spec"]
    suspend = {"runPolicy": {"suspend": False}} if "runPolicy" in spec else {"suspend": False}
    site.kube.patch(operator.path, {"spec": suspend})
    site.cycle()
    assert site.cycle().written == 0
    assert not suspended(operator, kind)
    assert (site.row("w1").state, site.row("w1").allocated_gpus) == (S.PENDING, 0)


@pytest.mark.parametrize("kind", MANAGED)
def test_work_that_names_its_own_controller_is_admitted(site: World, kind: str) -> None:
    own = adapter_of(kind).controller  # type: ignore[attr-defined] # all of these have one
    operator = placed(site, kind, managed(site, kind, own))
    site.cycle()

    assert not suspended(operator, kind)


def test_train_job_that_leaves_its_size_to_the_runtime_waits_with_a_remedy(site: World) -> None:
    manifest = MANIFESTS["TrainJob"]("w1")
    del manifest["spec"]["trainer"]["numNodes"]
    placed(site, "TrainJob", manifest)
    site.cycle()

    assert "spec.trainer.numNodes" in site.row("w1").sentence


def test_definition_installed_later_is_taken_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.connection.reflector.UNSERVED_S", 0.05)
    world.cycle()
    install(world.kube)
    operator = submitted(world, "JobSet")

    def admitted() -> bool:
        world.cycle()
        return not suspended(operator, "JobSet")

    eventually(admitted)
