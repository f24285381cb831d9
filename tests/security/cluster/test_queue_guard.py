"""Work that came past the portal: by kubectl, into somebody else's queue, as more than one may have."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.vocabulary import labels
from scheduling.models import PriorityClass, Queue, State
from scheduling.services.queues.service_classes import ServiceClass, ServiceClasses
from scheduling.services.snapshot import build as snapshots
from tests.scheduling.control_plane import ON
from tests.scheduling.kube import World

KEPT: dict[str, ServiceClasses] = {}


def kept(cluster: Any, unchanged: Any) -> ServiceClasses:
    """What the keeper of people says in these tests."""
    return KEPT["now"]


@pytest.fixture
def bound(world: World, settings: Any) -> World:
    """``research`` is a team's; ann is its only member and may have 4 GPUs, for an hour, as ``train``."""
    settings.WEIR_SERVICE_CLASSES = f"{__name__}.kept"
    give()
    return world


def give(**more: Any) -> None:
    given: dict[str, Any] = {
        "priority_classes": frozenset({"train"}),
        "max_gpus": 4000,
        "max_run_time_s": 3600,
        **more,
    }
    ann = ServiceClass("ann", "research", "team", "researcher", **given)
    KEPT["now"] = ServiceClasses((ann,), frozenset({"research"}))


def kubectl(
    world: World, name: str, *, user: str = "ann", limit_s: int | None = 60, **asked: Any
) -> None:
    """A Job as somebody applies it; the annotation is what the API server's record makes it."""
    manifest = world.manifest(name, run_time_limit_s=limit_s, **asked)
    manifest["metadata"]["annotations"][labels.USER] = user
    world.kube.create("/apis/batch/v1/namespaces/default/jobs", manifest)


def refused(world: World, name: str) -> str:
    """Why ``name`` waits, once it is told on the object and an Event says so."""
    world.cycles_until(lambda: world.notes(name).get(labels.REASON))
    assert world.read(name)["spec"]["suspend"] is True
    assert world.row(name).reason == world.notes(name)[labels.REASON]
    world.cycles_until(lambda: world.events(name))
    return world.notes(name)[labels.REASON]


def test_what_the_class_of_service_allows_runs(bound: World) -> None:
    kubectl(bound, "fine", gpus=4)
    bound.cycles_until(lambda: bound.row("fine").state == State.RUNNING)


@pytest.mark.parametrize("user", ["", "eve"])
def test_stranger_gets_nothing_in_a_teams_queue(bound: World, user: str) -> None:
    kubectl(bound, "stranger", user=user)
    assert refused(bound, "stranger") == "not_allowed"
    assert "Ask the lead" in bound.notes("stranger")[labels.SENTENCE]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"gpus": 5}, "more than the 4"),
        ({"gpus": 1, "pods": 5}, "more than the 4"),
        ({"limit_s": None}, "needs a run-time limit"),
        ({"limit_s": 7200}, "longer than"),
    ],
)
def test_more_than_the_class_of_service_is_refused(
    bound: World, asked: dict[str, Any], says: str
) -> None:
    kubectl(bound, "greedy", **asked)
    assert refused(bound, "greedy") == "not_allowed"
    assert says in bound.notes("greedy")[labels.SENTENCE]


def test_priority_class_that_one_lacks_is_refused_by_name_and_by_default(bound: World) -> None:
    PriorityClass.objects.create(name="urgent", value=99)
    kubectl(bound, "raised")
    bound.edit("raised", {"metadata": {"labels": {labels.PRIORITY_CLASS: "urgent"}}})
    assert refused(bound, "raised") == "not_allowed"
    give(priority_classes=frozenset({"urgent"}))
    kubectl(bound, "default")
    assert refused(bound, "default") == "not_allowed"


@pytest.mark.parametrize("queue", ["research", "products"])
def test_priority_of_the_nodes_own_pods_is_refused_in_any_queue(bound: World, queue: str) -> None:
    manifest = bound.manifest("critical", queue=queue, run_time_limit_s=60)
    manifest["metadata"]["annotations"][labels.USER] = "ann"
    manifest["spec"]["template"]["spec"]["priorityClassName"] = "system-node-critical"
    bound.kube.create("/apis/batch/v1/namespaces/default/jobs", manifest)
    assert refused(bound, "critical") == "not_allowed"
    assert "system-node-critical" in bound.notes("critical")[labels.SENTENCE]


def test_work_without_gpus_is_refused_the_same(bound: World) -> None:
    manifest = bound.manifest("cpu", run_time_limit_s=60)
    manifest["metadata"]["annotations"] = {labels.USER: "eve"}
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    bound.kube.create("/apis/batch/v1/namespaces/default/jobs", manifest)
    assert refused(bound, "cpu") == "not_allowed"


def test_who_names_no_class_runs_on_what_is_given(bound: World) -> None:
    bound.cluster.gpu_classes.create(name="l4", node_labels={"gpu": "l4"})
    give(gpu_classes=frozenset({"l4"}))
    manifest = bound.manifest("unnamed", run_time_limit_s=60)
    manifest["metadata"]["annotations"] = {labels.USER: "ann"}
    bound.kube.create("/apis/batch/v1/namespaces/default/jobs", manifest)
    # The nodes of the cluster are of h100, where it would have run before.
    bound.cycles_until(lambda: bound.notes("unnamed").get(labels.REASON))
    assert bound.row("unnamed").state == State.PENDING
    give(gpu_classes=frozenset({"l4", "h100"}))
    bound.cycles_until(lambda: bound.row("unnamed").state == State.RUNNING)


def test_what_runs_is_left_alone_when_less_is_given_and_judged_when_it_waits(bound: World) -> None:
    kubectl(bound, "runs", gpus=4)
    bound.cycles_until(lambda: bound.row("runs").state == State.RUNNING)
    give(max_gpus=1000)
    for _ in range(3):
        bound.cycle()
    assert bound.read("runs")["spec"]["suspend"] is False
    bound.edit("runs", {"spec": {"suspend": True}})
    bound.cycles_until(lambda: bound.row("runs").reason == "not_allowed")


def test_refused_work_starts_once_its_user_may_have_it(bound: World) -> None:
    kubectl(bound, "later", gpus=8)
    assert refused(bound, "later") == "not_allowed"
    give(max_gpus=8000)
    bound.cycles_until(lambda: bound.row("later").state == State.RUNNING)


def test_refused_work_keeps_nobody_waiting(bound: World) -> None:
    kubectl(bound, "greedy", gpus=8)
    assert refused(bound, "greedy") == "not_allowed"
    kubectl(bound, "modest", gpus=4)
    bound.cycles_until(lambda: bound.row("modest").state == State.RUNNING)


def test_observe_mode_shows_the_same_judgement(bound: World) -> None:
    bound.cluster.mode = "observe"
    bound.cluster.save(update_fields=["mode"])
    kubectl(bound, "greedy", gpus=8)
    bound.cycles_until(lambda: bound.row("greedy").reason == "not_allowed")
    assert labels.REASON not in bound.notes("greedy")


def test_queue_takes_no_work_of_another_namespace_and_says_no_more_of_it_than_of_none(
    world: World,
) -> None:
    Queue.objects.filter(name="research").update(namespace="research")
    said = {}
    for name, queue in (("taken", "research"), ("nowhere", "no-such-queue")):
        world.job(name, queue=queue)
        world.cycles_until(lambda name=name: world.notes(name).get(labels.REASON))
        said[name] = world.notes(name)[labels.SENTENCE].replace(queue, "Q")
        assert world.row(name).reason == "misrouted"
        assert world.row(name).queue is None
        world.cycles_until(lambda name=name: "Misrouted" in world.events(name))
    assert said["taken"] == said["nowhere"]
    assert "namespace default" in said["taken"]


def test_queue_without_a_namespace_takes_work_of_all_but_those_of_others(world: World) -> None:
    Queue.objects.filter(name="research").update(namespace="")
    world.job("mine")
    world.cycles_until(lambda: world.row("mine").reason == "misrouted")
    Queue.objects.filter(name="products").update(namespace="products")
    world.cycles_until(lambda: world.row("mine").state == State.RUNNING)


def test_work_that_runs_stays_in_its_queue_when_that_gets_another_namespace(world: World) -> None:
    world.job("runs")
    world.cycles_until(lambda: world.row("runs").state == State.RUNNING)
    Queue.objects.filter(name="research").update(namespace="research")
    for _ in range(3):
        world.cycle()
    assert world.read("runs")["spec"]["suspend"] is False
    assert world.row("runs").queue is not None


@pytest.mark.skipif(ON, reason="others write to objects there as well")
def test_quiet_work_is_judged_no_second_time(bound: World, monkeypatch: Any) -> None:
    from scheduling.services.queues.rows import PolicyRows

    kubectl(bound, "greedy", gpus=8)
    assert refused(bound, "greedy") == "not_allowed"
    bound.cycle()
    judged: list[str] = []
    real = PolicyRows.judge
    monkeypatch.setattr(
        PolicyRows, "judge", lambda rows, o: (judged.append(o.name), real(rows, o))[1]
    )
    bound.cycle()
    assert judged == []


def test_label_that_is_raised_during_a_run_gains_nothing(bound: World) -> None:
    PriorityClass.objects.create(name="urgent", value=99, preemptible=False)
    kubectl(bound, "sneaky")
    bound.cycles_until(lambda: bound.row("sneaky").state == State.RUNNING)
    bound.edit("sneaky", {"metadata": {"labels": {labels.PRIORITY_CLASS: "urgent"}}})
    for _ in range(3):
        bound.cycle()
    assert bound.row("sneaky").priority_class.name == "train"
    snapshot = snapshots.live(bound.cluster)
    assert [w.priority_class for w in snapshot.workloads] == ["train"]


def test_label_that_one_may_have_counts_during_a_run(bound: World) -> None:
    PriorityClass.objects.create(name="urgent", value=99)
    give(priority_classes=None)
    kubectl(bound, "raised")
    bound.cycles_until(lambda: bound.row("raised").state == State.RUNNING)
    bound.edit("raised", {"metadata": {"labels": {labels.PRIORITY_CLASS: "urgent"}}})
    bound.cycles_until(lambda: bound.row("raised").priority_class.name == "urgent")
