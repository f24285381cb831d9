"""What people do to workloads, in their own name."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.connection.client import Client, Person
from scheduling.cluster.vocabulary import labels
from scheduling.models import Cluster, PriorityClass, Queue, State
from scheduling.services.errors import ServiceError
from scheduling.services.queues.service_classes import ServiceClass, ServiceClasses
from scheduling.services.tables.row_cache import RowCache
from scheduling.services.workloads import submit as workloads
from scheduling.services.workloads.manifest import build_job_manifest
from tests.scheduling.kube import World

S = State


def running(world: World, name: str) -> bool:
    return world.row(name).state == S.RUNNING


def test_submitted_job_is_suspended_whatever_it_says_and_names_its_user(world: World) -> None:
    manifest = world.manifest("w1", suspend=False)
    manifest["metadata"]["annotations"]["weir.dev/user"] = "somebody.else"
    manifest["metadata"]["annotations"]["weir.dev/gpu-class"] = "h100"
    made = workloads.submit(world.cluster, manifest=manifest, user="ann")

    assert made["spec"]["suspend"] is True
    assert made["metadata"]["annotations"]["weir.dev/user"] == "ann"
    assert "weir.dev/gpu-class" not in made["metadata"]["annotations"]
    world.cycles_until(lambda: running(world, "w1"))
    assert (world.row("w1").uid, world.row("w1").user) == (made["metadata"]["uid"], "ann")


def test_acts_reach_the_server_in_the_persons_name(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Queue.objects.filter(name="root").update(access_group="everybody")
    Queue.objects.filter(name="research").update(access_group="lab-people")
    people: list[object] = []
    request = Client.request

    def listen(self: Client, method: str, path: str, **more: object) -> object:
        if method != "GET":
            people.append(more["as_person"])
        return request(self, method, path, **more)

    monkeypatch.setattr(Client, "request", listen)
    workloads.submit(world.cluster, manifest=world.manifest("w1"), user="ann")

    assert people == [Person("weir:ann", ("weir:people",))]


def test_namespace_left_out_is_the_queues(world: World) -> None:
    manifest = world.manifest("w1")
    del manifest["metadata"]["namespace"]

    assert (
        workloads.submit(world.cluster, manifest=manifest, user="ann")["metadata"]["namespace"]
        == "default"
    )


@pytest.mark.parametrize(
    ("label", "words"),
    [("", "names no queue"), ("nowhere", "does not exist"), ("root", "does not exist")],
)
def test_manifest_without_a_leaf_queue_is_refused_at_the_queue(
    world: World, label: str, words: str
) -> None:
    with pytest.raises(ServiceError, match=words) as refused:
        workloads.submit(world.cluster, manifest=world.manifest("w1", queue=label), user="ann")

    assert refused.value.field == "queue"


def test_inner_queue_takes_no_work(world: World) -> None:
    research = Queue.objects.get(name="research")
    Queue.objects.create(cluster=world.cluster, name="vision", parent=research)

    with pytest.raises(ServiceError, match="has queues below it"):
        workloads.submit(world.cluster, manifest=world.manifest("w1"), user="ann")


def test_other_kinds_are_refused(world: World) -> None:
    manifest = {**world.manifest("w1"), "kind": "StatefulSet", "apiVersion": "apps/v1"}

    with pytest.raises(ServiceError) as refused:
        workloads.submit(world.cluster, manifest=manifest, user="ann")

    assert refused.value.field == "kind"


def test_name_that_is_taken_is_refused_at_the_name(world: World) -> None:
    workloads.submit(world.cluster, manifest=world.manifest("w1"), user="ann")

    with pytest.raises(ServiceError) as refused:
        workloads.submit(world.cluster, manifest=world.manifest("w1"), user="bob")

    assert (refused.value.code, refused.value.field) == ("name_taken", "name")


def test_name_that_another_queues_work_has_is_refused_without_saying_so(world: World) -> None:
    workloads.submit(world.cluster, manifest=world.manifest("w1"), user="ann")
    beside = Queue.objects.create(
        cluster=world.cluster, name="beside", parent=Queue.objects.get(name="root")
    )
    manifest = world.manifest("w1")
    manifest["metadata"]["labels"]["weir.dev/queue"] = beside.name

    with pytest.raises(ServiceError) as refused:
        workloads.submit(world.cluster, manifest=manifest, user="bob")

    assert (refused.value.code, refused.value.field) == ("bad_name", "name")
    assert refused.value.sentence == "That name cannot be used here."


def test_invalid_manifest_names_the_servers_field(world: World) -> None:
    manifest = world.manifest("w1")
    manifest["spec"]["parallelism"] = -1

    with pytest.raises(ServiceError) as refused:
        workloads.submit(world.cluster, manifest=manifest, user="ann")

    assert refused.value.field == "spec.parallelism"


def test_cluster_that_does_not_answer_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.connection.client.BACK_OFF_S", (0.001, 0.001))
    away = Cluster(name="away", api_url="http://127.0.0.1:9")
    manifest = world.manifest("w1")
    Queue.objects.update(cluster=world.cluster)
    monkeypatch.setattr(workloads, "_leaf", lambda cluster, name: Queue(name=name))

    with pytest.raises(ServiceError, match="does not answer"):
        workloads.submit(away, manifest=manifest, user="ann")


def test_cancelled_job_is_deleted_and_a_second_cancel_is_no_error(world: World) -> None:
    world.job("w1")
    world.cycles_until(lambda: running(world, "w1"))
    row = world.row("w1")
    workloads.cancel(row, user="ann")
    workloads.cancel(row, user="ann")
    world.cycles_until(lambda: world.row("w1").state == S.FINISHED)

    assert world.row("w1").outcome == "cancelled"


def test_cancel_spares_a_job_of_the_same_name_made_since(world: World) -> None:
    world.job("w1")
    world.cycle()
    row = world.row("w1")
    row.uid = "another"
    workloads.cancel(row, user="ann")

    assert world.read("w1")


def test_held_workload_is_not_admitted_until_released(world: World) -> None:
    Queue.objects.filter(name="research").update(stop="hold")
    world.job("w1")
    world.cycle()
    workloads.hold(world.row("w1"), user="ann")
    Queue.objects.filter(name="research").update(stop="none")
    world.cycle()
    assert (world.row("w1").state, world.row("w1").held) == (S.PENDING, True)
    assert world.row("w1").reason == "held"

    workloads.release(world.row("w1"), user="ann")
    world.cycles_until(lambda: running(world, "w1"))


def test_running_workload_cannot_be_held(world: World) -> None:
    world.job("w1")
    world.cycles_until(lambda: running(world, "w1"))

    with pytest.raises(ServiceError, match="is running"):
        workloads.hold(world.row("w1"), user="ann")


def test_priority_class_changes_on_the_object_and_in_the_row(world: World) -> None:
    PriorityClass.objects.create(name="urgent", value=100)
    world.job("w1")
    world.cycle()
    workloads.set_priority_class(world.row("w1"), name="urgent", user="ann")
    world.cycle()

    assert world.row("w1").priority_class.name == "urgent"


def test_priority_class_that_its_user_may_not_have_is_refused_whoever_sets_it(
    world: World, settings: Any
) -> None:
    PriorityClass.objects.create(name="urgent", value=100)
    world.job("w1")
    world.cycles_until(lambda: running(world, "w1"))
    settings.WEIR_SERVICE_CLASSES = f"{__name__}.only_train"

    with pytest.raises(ServiceError) as refused:
        workloads.set_priority_class(world.row("w1"), name="urgent", user="lead")

    assert refused.value.code == "priority_class_not_allowed"
    assert labels.PRIORITY_CLASS not in world.read("w1")["metadata"]["labels"]


def test_priority_class_that_who_sets_it_may_not_have_is_refused(
    world: World, settings: Any
) -> None:
    PriorityClass.objects.create(name="urgent", value=100)
    world.job("w1")
    world.cycle()
    settings.WEIR_SERVICE_CLASSES = f"{__name__}.helper_and_ann"

    with pytest.raises(ServiceError) as refused:
        workloads.set_priority_class(world.row("w1"), name="urgent", user="helper")

    assert refused.value.code == "priority_class_not_allowed"
    workloads.set_priority_class(world.row("w1"), name="urgent", user="ann")


def helper_and_ann(cluster: Cluster, unchanged: RowCache) -> ServiceClasses:
    """``ann`` may have every class, ``helper`` train alone."""
    every = ServiceClass("ann", "research", "t", "p")
    train = ServiceClass("helper", "research", "t", "q", priority_classes=frozenset({"train"}))
    return ServiceClasses((every, train), frozenset({"research"}))


def only_train(cluster: Cluster, unchanged: RowCache) -> ServiceClasses:
    nobody = ServiceClass("", "research", "t", "p", priority_classes=frozenset({"train"}))
    return ServiceClasses((nobody,), frozenset({"research"}))


def test_unknown_priority_class_is_refused_at_the_field(world: World) -> None:
    world.job("w1")
    world.cycle()

    with pytest.raises(ServiceError) as refused:
        workloads.set_priority_class(world.row("w1"), name="nope", user="ann")

    assert refused.value.field == "priority_class"


def test_manifest_of_a_form_says_all_that_was_asked(world: World) -> None:
    manifest = build_job_manifest(
        name="train", queue="research", namespace="default", image="python:3.12",
        command=["python", "train.py"], gpu_classes=[world.cluster.gpu_classes.get()],
        gpus_per_pod=4, pods_min=2, pods_max=4, cpus_per_pod=8, memory_gib_per_pod=64,
        priority_class="train", run_time_limit_s=3600, checkpoint_interval_s=1200,
        topology={"required": "", "segment_size": "2", "segment_required": "rack"},
    )  # fmt: skip

    pod = manifest["spec"]["template"]["spec"]
    assert manifest["spec"]["suspend"] is True
    assert manifest["spec"]["parallelism"] == manifest["spec"]["completions"] == 4
    assert manifest["spec"]["activeDeadlineSeconds"] == 3600
    assert manifest["metadata"]["labels"] == {
        "weir.dev/queue": "research",
        "weir.dev/priority-class": "train",
    }
    assert manifest["metadata"]["annotations"] == {
        "weir.dev/gpu-classes": "h100",
        "weir.dev/min-members": "2",
        "weir.dev/checkpoint-interval": "1200s",
        "weir.dev/segment-size": "2",
        "weir.dev/segment-required": "rack",
    }
    assert "priorityClassName" not in pod
    assert pod["containers"][0]["command"] == ["python", "train.py"]
    assert pod["containers"][0]["resources"]["requests"] == {
        "nvidia.com/gpu": "4", "cpu": "8000m", "memory": "65536Mi",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"gpus_per_pod": 0}, "gpus_per_pod"),
        ({"pods_min": 0}, "pods_min"),
        ({"pods_min": 3, "pods_max": 2}, "pods_max"),
        ({"gpu_classes": []}, "gpu_classes"),
    ],
)
def test_impossible_form_is_refused_at_the_field(
    world: World, fields: dict[str, object], field: str
) -> None:
    good = {
        "name": "w", "queue": "research", "namespace": "default", "image": "x",
        "gpu_classes": list(world.cluster.gpu_classes.all()),
    }  # fmt: skip
    with pytest.raises(ServiceError) as refused:
        build_job_manifest(**{**good, **fields})

    assert refused.value.field == field
