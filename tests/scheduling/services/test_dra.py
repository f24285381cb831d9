"""A GPU class of devices: claimed by template, counted against quota and nodes, admitted to its nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from scheduling.models import GpuClass, Node, State
from scheduling.services.clusters.add import find_classes
from scheduling.services.clusters.checkup import check
from tests.scheduling.kube import JOBS, World, add_node, node

Json = dict[str, Any]
API = "/apis/resource.k8s.io/v1"
DRIVER = "gpu.weir.test"
NAME = "l40.weir.test"


def furnish(world: World, devices: int) -> None:
    """Node ``d1`` with ``devices`` of DeviceClass ``l40.weir.test``, and a GPU class of them."""
    gpu_class = GpuClass.objects.create(
        cluster=world.cluster,
        name="l40",
        resource_name=f"deviceclass.resource.kubernetes.io/{NAME}",
        node_labels={"gpu": "l40"},
    )
    for queue in world.cluster.queues.exclude(parent=None):
        queue.quotas.create(
            gpu_class=gpu_class,
            nominal_gpus=8000,
            effective_from=world.cluster.now() - timedelta(days=1),
        )
    add_node(world.kube, node("d1", gpu="l40"))
    cel = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    _put(world, "deviceclasses", "DeviceClass", {"name": NAME}, {"selectors": [cel]})
    pool = {"name": "d1", "generation": 1, "resourceSliceCount": 1}
    offered = {"driver": DRIVER, "nodeName": "d1", "pool": pool}
    offered["devices"] = [{"name": f"gpu-{number}"} for number in range(devices)]
    _put(world, "resourceslices", "ResourceSlice", {"name": "d1-gpus"}, offered)
    request = {"name": "gpu", "exactly": {"deviceClassName": NAME, "count": 2}}
    _put(
        world,
        "namespaces/default/resourceclaimtemplates",
        "ResourceClaimTemplate",
        {"name": "pair"},
        {"spec": {"devices": {"requests": [request]}}},
    )


def _put(world: World, path: str, kind: str, meta: Json, spec: Json) -> None:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}
    world.kube.create(f"{API}/{path}", body)


def claiming(world: World, name: str) -> Json:
    job = world.manifest(name)
    job["metadata"]["annotations"]["weir.dev/gpu-classes"] = "l40"
    pod = job["spec"]["template"]["spec"]
    pod["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "pair"}]
    pod["containers"][0]["resources"] = {"claims": [{"name": "gpus"}]}
    return job


def test_claims_are_counted_and_admitted_while_devices_are_free(world: World) -> None:
    jobs = [claiming(world, f"w{number}") for number in range(3)]
    furnish(world, devices=5)
    for job in jobs:
        world.kube.create(JOBS, job)
    world.cycles_until(
        lambda: [world.row(f"w{n}").state for n in range(3)].count(State.RUNNING) == 2
    )
    world.cycle()

    assert Node.objects.get(name="d1", gpu_class__name="l40").gpus == 5000
    running = [w for n in range(3) if (w := world.row(f"w{n}")).state == State.RUNNING]
    assert [(w.gpus, w.placement) for w in running] == [(2000, {"d1": 1})] * 2
    (waiting,) = (w for n in range(3) if (w := world.row(f"w{n}")).state != State.RUNNING)
    assert world.read(waiting.name)["spec"]["suspend"]


def test_partitions_of_one_gpu_are_never_planned_beyond_it(world: World) -> None:
    """Four halves of two GPUs, and the two as a whole: of that, four devices at once."""
    furnish(world, devices=0)
    path = f"{API}/resourceslices"
    world.kube.delete(f"{path}/d1-gpus")
    pool = {"name": "d1", "generation": 2, "resourceSliceCount": 2}
    described = {"driver": DRIVER, "nodeName": "d1", "pool": pool}
    held = [{"name": f"g{n}", "counters": {"memory": {"value": "40Gi"}}} for n in range(2)]
    devices = [
        drawing(f"g{n}-{part}", f"g{n}", memory)
        for n in range(2)
        for part, memory in (("whole", "40Gi"), ("left", "20Gi"), ("right", "20Gi"))
    ]
    for name, part in (("sharedCounters", held), ("devices", devices)):
        meta = {"name": f"d1-{name.lower()}"}
        _put(world, "resourceslices", "ResourceSlice", meta, {**described, name: part})
    kept = world.kube.get(f"{path}/d1-devices")["spec"]["devices"]
    assert all("consumesCounters" in device for device in kept)
    world.cycle()

    assert Node.objects.get(name="d1", gpu_class__name="l40").gpus == 4000


def drawing(name: str, gpu: str, memory: str) -> Json:
    drawn = {"counterSet": gpu, "counters": {"memory": {"value": memory}}}
    return {"name": name, "consumesCounters": [drawn]}


def test_claim_of_all_devices_waits_with_a_remedy(world: World) -> None:
    furnish(world, devices=5)
    path = f"{API}/namespaces/default/resourceclaimtemplates"
    world.kube.delete(f"{path}/pair")
    request = {"name": "gpu", "exactly": {"deviceClassName": NAME, "allocationMode": "All"}}
    _put(
        world,
        "namespaces/default/resourceclaimtemplates",
        "ResourceClaimTemplate",
        {"name": "pair"},
        {"spec": {"devices": {"requests": [request]}}},
    )
    world.kube.create(JOBS, claiming(world, "w1"))
    world.cycles_until(lambda: world.row("w1").reason == "never_fits")

    assert "takes all devices that match" in world.notes("w1")["weir.dev/sentence"]


def test_check_of_the_cluster_counts_devices(world: World) -> None:
    furnish(world, devices=5)

    assert "l40: 5 GPUs on 1 node." in [item.sentence for item in check(world.cluster)]


def test_class_is_found_for_devices_of_a_gpu_driver(world: World) -> None:
    furnish(world, devices=5)
    world.cluster.gpu_classes.filter(name="l40").delete()
    nic = {"driver": "nic.weir.test", "nodeName": "d1", "devices": [{"name": "nic-0"}]}
    nic["pool"] = {"name": "d1-nics", "generation": 1, "resourceSliceCount": 1}
    _put(world, "resourceslices", "ResourceSlice", {"name": "d1-nics"}, nic)
    cel = {"cel": {"expression": "device.driver == 'nic.weir.test'"}}
    _put(world, "deviceclasses", "DeviceClass", {"name": "nic.weir.test"}, {"selectors": [cel]})

    found = {c.name: c.resource_name for c in find_classes(world.cluster)}
    assert found[NAME] == f"deviceclass.resource.kubernetes.io/{NAME}"
    assert "nic" not in str(found)


def test_mig_profiles_of_one_node_are_counted_apart(world: World) -> None:
    profiles = {"mig-1g": "nvidia.com/mig-1g.5gb", "mig-3g": "nvidia.com/mig-3g.20gb"}
    for name, resource in profiles.items():
        GpuClass.objects.create(
            cluster=world.cluster, name=name, resource_name=resource, node_labels={"gpu": "a100"}
        )
    split = node("m1", gpus=2, gpu="a100")
    parts = {"nvidia.com/mig-1g.5gb": "7", "nvidia.com/mig-3g.20gb": "4"}
    for part in ("capacity", "allocatable"):
        split["status"][part] = {**split["status"][part], **parts}
    GpuClass.objects.create(cluster=world.cluster, name="a100", node_labels={"gpu": "a100"})
    add_node(world.kube, split)
    world.cycle()

    counted = dict(Node.objects.filter(name="m1").values_list("gpu_class__name", "gpus"))
    assert counted == {"a100": 2000, "mig-1g": 7000, "mig-3g": 4000}
