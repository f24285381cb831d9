"""Work that asks for no GPUs waits its turn and then runs where kube-scheduler finds room."""

from __future__ import annotations

from typing import Any

from scheduling.models import ClusterMode, GpuClass, Node, Queue, State
from tests.scheduling.kube import JOBS, World, add_node, node
from tests.scheduling.manifests import node_affinity, template

Json = dict[str, Any]


def without_gpus(world: World, name: str, *, cpus: str = "1", **more: Any) -> Json:
    job = world.manifest(name, **more)
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": cpus}}
    return job


def cpu_node(world: World, name: str = "c1") -> None:
    made = node(name, gpu="none")
    for part in ("capacity", "allocatable"):
        made["status"][part] = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    add_node(world.kube, made)


def running(world: World, *names: str) -> bool:
    return all(world.row(name).state == State.RUNNING for name in names)


def test_job_without_gpus_runs_where_there_is_room_without_holding_any(world: World) -> None:
    """Nodes with GPUs have 96 CPUs each: one that is kept from them fits on the other only."""
    cpu_node(world)
    for name in ("n1", "n2"):
        world.kube.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    world.kube.create(JOBS, without_gpus(world, "prepare", cpus="48"))
    world.cycles_until(lambda: running(world, "prepare"))

    job, row = world.read("prepare"), world.row("prepare")
    assert "affinity" not in job["spec"]["template"]["spec"]
    assert not job["spec"]["template"]["spec"].get("tolerations")
    assert row.placement == {"c1": 1}
    assert (row.gpus, sum(Node.objects.values_list("allocated_gpus", flat=True))) == (0, 0)
    assert not Node.objects.filter(name="c1").exists()
    world.cycle()
    assert world.cycle().written == 0


def test_job_without_gpus_is_held_to_the_queues_limit_of_jobs(world: World) -> None:
    Queue.objects.filter(name="research").update(max_running=1)
    for name in ("first", "second"):
        world.kube.create(JOBS, without_gpus(world, name))
    world.cycles_until(lambda: running(world, "first"))
    world.cycles_until(lambda: world.row("second").reason == "queue_at_job_limit")

    assert world.read("second")["spec"]["suspend"]


def test_cpus_that_work_without_gpus_holds_are_not_planned_with(world: World) -> None:
    for name in ("n1", "n2"):
        job = without_gpus(world, f"on-{name}", cpus="90")
        job["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": name}
        world.kube.create(JOBS, job)
    world.cycles_until(lambda: running(world, "on-n1", "on-n2"))
    job = world.manifest("w1", gpus=1)
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "32"
    world.kube.create(JOBS, job)
    world.cycle()
    world.cycle()

    assert world.read("w1")["spec"]["suspend"]


def test_running_work_without_gpus_is_adopted_and_left_alone(world: World) -> None:
    cpu_node(world)
    world.cluster.mode = ClusterMode.OBSERVE
    world.cluster.save()
    job = without_gpus(world, "prepare", cpus="48", suspend=False)
    job["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "c1"}
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: running(world, "prepare"))
    world.cluster.mode = ClusterMode.ENFORCE
    world.cluster.save()
    world.cycles_until(lambda: "weir.dev/gpu-class" in world.notes("prepare"))

    assert not world.read("prepare")["spec"]["suspend"]
    world.cycle()
    assert world.cycle().written == 0


def test_pod_without_gpus_is_let_go_where_there_is_room(world: World) -> None:
    pod = template(0)["spec"] | {"schedulingGates": [{"name": "weir.dev/queue"}]}
    meta = {"name": "p1", "labels": {"weir.dev/queue": "research"}}
    world.kube.create("/api/v1/namespaces/default/pods", {"metadata": meta, "spec": pod})
    world.cycles_until(lambda: running(world, "p1"))

    pod = world.kube.get("/api/v1/namespaces/default/pods/p1")["spec"]
    assert "affinity" not in pod


def test_gpus_that_no_class_covers_wait_with_a_remedy(world: World) -> None:
    job = world.manifest("w1")
    amounts = {"nvidia.com/mig-2g.10gb": "1"}
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": amounts, "requests": amounts}
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: world.row("w1").reason == "never_fits")

    assert "asks for nvidia.com/mig-2g.10gb, of which" in world.row("w1").sentence
    assert world.read("w1")["spec"]["suspend"]


def test_job_kept_by_its_affinity_from_the_first_class_runs_on_the_other(world: World) -> None:
    GpuClass.objects.create(cluster=world.cluster, name="a100", node_labels={"gpu": "a100"})
    add_node(world.kube, node("a1", gpu="a100"))
    queue = Queue.objects.get(name="research")
    quota = queue.quotas.get()
    quota.pk, quota.gpu_class = None, GpuClass.objects.get(name="a100")
    quota.save()
    job = world.manifest("w1")
    job["metadata"]["annotations"].pop("weir.dev/gpu-classes", None)
    job["spec"]["template"]["spec"]["affinity"] = node_affinity("gpu", "a100", "b200")
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: running(world, "w1"))

    assert world.row("w1").placement == {"a1": 1}


def test_job_that_may_run_on_no_class_waits_with_a_remedy(world: World) -> None:
    job = world.manifest("w1")
    job["metadata"]["annotations"].pop("weir.dev/gpu-classes", None)
    job["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "b200"}
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: world.row("w1").reason == "never_fits")

    assert "leave none of the GPU classes" in world.row("w1").sentence
