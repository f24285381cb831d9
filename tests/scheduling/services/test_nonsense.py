"""What people, or the world, write on one object costs that object at most, never the others."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import GpuClass, Node, Quota, State
from tests.scheduling.kube import JOBS, World

Json = dict[str, Any]

ANNOTATIONS = {
    "topology-required": ("zone", "Rack"),
    "topology-preferred": ("zone", "\u0000"),
    "segment-size": ("0", "-1", "four", "9" * 5000, "\u0000", "²"),
    "segment-required": ("zone", "rack"),
    "predicted-seconds": ("nan", "inf", "-5", "1e300", "10,nan", "10,-1"),
    "checkpoint-interval": ("nan", "inf", "1ms", "1e300", "99999999999999d"),
    "checkpointed-at": (
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2126-01-01T00:00:00Z",
    ),
    "min-members": ("-3", "0", "9" * 5000),
    "gpu-classes": (",,\u0000,h100",),
    "user": ("u" * 5000, "a\u0000b"),
    "evicted-by": ("9" * 5000,),
    "original": (
        "[]",
        '{"roles": {"pod": 3}, "sizes": {}, "set": 1}',
        '{"roles": {"pod": {"terms": 1}}, "sizes": {}, "set": 1}',
        '{"roles": {}, "sizes": {"pod": "x"}, "set": 1}',
    ),
    "moves-to": (
        '{"gpu_class": "nosuch", "placement": {"n1": 1}}',
        '{"gpu_class": "h100", "placement": {"n1": -1}}',
        '{"gpu_class": "h100", "placement": {"n1": 5000}}',
        '{"gpu_class": "h100", "placement": []}',
    ),
}


def noted(world: World, name: str, notes: dict[str, str], *, suspend: bool = True) -> Json:
    manifest = world.manifest(name, suspend=suspend)
    manifest["metadata"]["annotations"] |= {
        f"weir.dev/{key}": value for key, value in notes.items()
    }
    return world.kube.create(JOBS, manifest)


@pytest.mark.parametrize("suspend", [True, False])
@pytest.mark.parametrize("key", ANNOTATIONS)
def test_annotation_that_makes_no_sense_stops_nobody_else(
    world: World, key: str, suspend: bool
) -> None:
    for number, value in enumerate(ANNOTATIONS[key]):
        noted(world, f"odd-{number}", {key: value}, suspend=suspend)
    world.job("good", queue="products", gpus=8)

    world.cycles_until(lambda: world.row("good").state == State.RUNNING)


def test_job_that_has_to_be_together_in_no_level_waits_with_a_remedy(world: World) -> None:
    noted(world, "w1", {"topology-required": "zone"})
    world.cycle()

    assert world.notes("w1")["weir.dev/reason"] == "never_fits"
    assert world.notes("w1")["weir.dev/sentence"] == (
        "It asks to be together in one 'zone', which is no level."
        " Set weir.dev/topology-required to one of block, rack, node."
    )


def test_job_larger_than_any_cluster_waits_with_a_remedy(world: World) -> None:
    manifest = world.manifest("huge", gpus=8)
    del manifest["spec"]["completions"], manifest["spec"]["completionMode"]
    manifest["spec"] |= {"parallelism": 2**31 - 1, "activeDeadlineSeconds": 2**40}
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"]["cpu"] = "9223372036854775807"
    world.kube.create(JOBS, manifest)
    world.job("good")
    world.cycles_until(lambda: world.row("good").state == State.RUNNING)

    row = world.row("huge")
    assert "Ask for fewer." in row.sentence
    # As much as a column of every database takes.
    assert max(row.max_members, row.cpus, row.run_time_limit_s) <= 2**31 - 1


def test_job_of_no_pods_is_not_given_one(world: World) -> None:
    manifest = world.manifest("none")
    manifest["spec"]["parallelism"] = 0
    world.kube.create(JOBS, manifest)
    world.cycle()

    assert world.row("none").sentence == "It asks for no pods. Ask for at least one."
    assert world.read("none")["spec"]["suspend"]


def second_class(world: World) -> None:
    """Class ``a100``, of which every leaf has 8 nominal GPUs and no node is one yet."""
    found = GpuClass.objects.create(
        cluster=world.cluster, name="a100", node_labels={"gpu": "a100"}, position=1
    )
    for quota in Quota.objects.filter(queue__cluster=world.cluster):
        quota.pk, quota.gpu_class = None, found
        quota.save()


def test_node_that_changes_its_class_keeps_what_runs_on_it(world: World) -> None:
    second_class(world)
    world.job("w1", gpus=6)
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    (node,) = world.row("w1").placement
    world.kube.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"gpu": "a100"}}})
    noted(world, "large", {"gpu-classes": "a100"})
    world.cycles_until(lambda: world.row("large").state == State.RUNNING)
    noted(world, "w2", {"gpu-classes": "a100"})
    noted(world, "w3", {"gpu-classes": "a100"})
    for _ in range(2):
        world.cycle()

    states = [world.row(name).state for name in ("w1", "large", "w2", "w3")]
    assert states.count(State.PENDING) == 1  # Two GPUs of the node are free, and no more.
    assert world.row("w1").state == State.RUNNING
    assert world.row("w1").gpu_class.name == "h100"


def taint(world: World, node: str, *keys: str) -> None:
    taints = [{"key": key, "value": "x", "effect": "NoSchedule"} for key in keys]
    world.kube.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": taints or None}})


def test_tainted_node_takes_no_work_until_it_is_clean(world: World) -> None:
    taint(world, "n1", "maintenance")
    world.job("w1", gpus=8, pods=2)
    world.job("w2", gpus=4)
    world.cycles_until(lambda: world.row("w2").state == State.RUNNING)
    assert world.row("w2").placement == {"n2": 1}
    assert world.read("w1")["spec"]["suspend"]

    world.edit("w2", {"spec": {"suspend": True}})
    taint(world, "n1")
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)


def test_class_whose_nodes_all_carry_a_taint_is_for_work_that_knows_it(world: World) -> None:
    taint(world, "n1", "dedicated", "nvidia.com/gpu")
    taint(world, "n2", "dedicated")
    manifest = world.manifest("w1", gpus=8, pods=2)
    manifest["spec"]["template"]["spec"]["tolerations"] = [
        {"key": "dedicated", "operator": "Exists"}
    ]
    world.kube.create(JOBS, manifest)
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    for node in ("n1", "n2"):
        taint(world, node)


def test_class_that_is_removed_leaves_its_work_running(world: World) -> None:
    world.job("w1", gpus=6)
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    waiting = world.manifest("w2")
    GpuClass.objects.get(cluster=world.cluster).delete()
    world.kube.create(JOBS, waiting)
    for _ in range(2):
        world.cycle()

    assert (world.row("w1").state, world.row("w2").state) == (State.RUNNING, State.PENDING)
    assert not world.read("w1")["spec"]["suspend"]
    assert not Node.objects.exists()


def test_gpus_of_init_containers_are_counted_as_the_scheduler_does(world: World) -> None:
    manifest = world.manifest("w1", gpus=2)
    spec = manifest["spec"]["template"]["spec"]
    amounts = {"nvidia.com/gpu": "8"}
    first = {"name": "fetch", "image": "work", "resources": {"limits": amounts}}
    spec["initContainers"] = [first]
    world.kube.create(JOBS, manifest)
    world.job("w2", gpus=8)
    world.job("w3", gpus=1)
    world.cycles_until(lambda: world.row("w2").state == State.RUNNING)

    assert (world.row("w1").gpus, world.row("w3").state) == (8000, State.PENDING)


@pytest.mark.parametrize("suspend", [True, False])
def test_copy_of_a_running_job_waits_for_its_own_turn(world: World, suspend: bool) -> None:
    world.job("first", gpus=8)
    world.cycles_until(lambda: world.row("first").state == State.RUNNING)
    copy = world.manifest("copy", gpus=8, suspend=suspend)
    copy["metadata"]["annotations"] = world.notes("first")
    world.job("second", gpus=8, queue="products")
    world.cycles_until(lambda: world.row("second").state == State.RUNNING)
    world.kube.create(JOBS, copy)
    world.cycles_until(lambda: world.read("copy")["spec"]["suspend"])
    world.cycles_until(lambda: world.row("copy").reason)
    assert (world.row("copy").state, world.row("copy").reason) == (State.PENDING, "waits_for_quota")

    world.kube.delete(f"{JOBS}/second", {"propagationPolicy": "Background"})
    world.cycles_until(lambda: world.row("copy").state == State.RUNNING)
    assert world.read("copy")["metadata"]["uid"] in world.notes("copy")["weir.dev/original"]
