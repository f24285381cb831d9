"""Plain pods behind a gate: let go together, evicted by deletion, and complaints about what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.connection.client import ApiError
from scheduling.cluster.enforcement.enforcer import Act, Enforcer
from scheduling.models import Outcome, Queue, State, Workload
from scheduling.services.workloads import submit as workloads
from tests.scheduling.kube import World
from tests.scheduling.operators import PODS

Json = dict[str, Any]
GATE = "weir.dev/queue"


def pod(
    world: World, name: str, *, group: str = "", total: int = 0, gpus: int = 1, **spec: Any
) -> Json:
    labels = {"weir.dev/queue": "research"}
    notes = {}
    if group:
        labels["weir.dev/pod-group"] = group
    if total:
        notes["weir.dev/pod-group-total"] = str(total)
    if "run_s" in spec:
        notes["weir.dev/run-seconds"] = str(spec.pop("run_s"))
    amounts = {"nvidia.com/gpu": str(gpus)}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": notes},
        "spec": {
            "schedulingGates": [{"name": GATE}],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "work",
                    "resources": {"limits": amounts, "requests": amounts},
                }
            ],
            **spec,
        },
    }
    return world.kube.create(PODS, body)


def read(world: World, name: str) -> Json:
    return world.kube.get(f"{PODS}/{name}")


def gated(world: World, name: str) -> bool:
    return bool(read(world, name)["spec"].get("schedulingGates"))


def runs(world: World, name: str) -> bool:
    return world.row(name).state == State.RUNNING


def test_group_is_let_go_when_all_of_it_is_there(world: World) -> None:
    for number in range(2):
        pod(world, f"p{number}", group="pair", total=3)
    world.cycle()
    assert gated(world, "p0")
    assert world.row("pair").reason == "gang_incomplete"
    assert "2 of the 3 pods" in world.row("pair").sentence

    pod(world, "p2", group="pair", total=3)
    world.cycles_until(lambda: runs(world, "pair"))
    row = world.row("pair")
    assert (row.kind, row.gpus, row.members) == ("PodGroup", 1000, 3)
    affinity = read(world, "p1")["spec"]["affinity"]["nodeAffinity"]
    assert "h100" in str(affinity)


def test_pod_on_its_own_is_a_group_of_one(world: World) -> None:
    pod(world, "alone", gpus=2)
    world.cycles_until(lambda: runs(world, "alone"))

    assert world.row("alone").gpus == 2000


def test_settled_group_is_left_alone(world: World) -> None:
    pod(world, "alone")
    world.cycles_until(lambda: runs(world, "alone"))
    world.cycle()

    assert world.cycle().written == 0


def test_evicted_group_is_deleted_pod_by_pod(world: World) -> None:
    for number in range(2):
        pod(world, f"p{number}", group="pair", total=2)
    world.cycles_until(lambda: runs(world, "pair"))
    Queue.objects.filter(name="research").update(stop="drain")
    world.cycle()

    for number in range(2):
        with pytest.raises(ApiError) as gone:
            read(world, f"p{number}")
        assert gone.value.status == 404
    assert "Evicted" in world.events("p0")


def test_group_that_ends_is_finished(world: World) -> None:
    for number in range(2):
        pod(world, f"p{number}", group="pair", total=2, run_s=0.1)
    world.cycles_until(lambda: world.row("pair").state == State.FINISHED)

    assert world.row("pair").outcome == Outcome.SUCCEEDED


def test_admission_that_reached_some_pods_only_is_finished(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        pod(world, f"p{number}", group="pair", total=2)
    write = Enforcer._write

    def half(self: Enforcer, act: Act) -> bool:
        return act.target.name != "p1" and write(self, act)

    monkeypatch.setattr(Enforcer, "_write", half)
    world.cycle()
    monkeypatch.setattr(Enforcer, "_write", write)
    assert (gated(world, "p0"), gated(world, "p1")) == (False, True)

    world.cycles_until(lambda: runs(world, "pair"))
    assert not gated(world, "p1")


def test_group_that_does_not_say_its_size_waits_with_a_remedy(world: World) -> None:
    pod(world, "p0", group="pair")
    world.cycle()

    assert gated(world, "p0")
    assert "weir.dev/pod-group-total" in world.row("pair").sentence
    assert read(world, "p0")["metadata"]["annotations"]["weir.dev/reason"] == "never_fits"


def test_queued_pod_without_the_gate_is_foreign(world: World) -> None:
    pod(world, "free", schedulingGates=[])
    world.cycle()

    assert not Workload.objects.filter(name="free").exists()


def test_group_of_unequal_pods_runs_and_holds_what_they_take(world: World) -> None:
    for number, gpus in enumerate((1, 4)):
        pod(world, f"p{number}", group="pair", total=2, gpus=gpus)
    world.cycles_until(lambda: runs(world, "pair"))

    row = world.row("pair")
    assert (row.gpus, row.members) == (1000, 5)
    assert [(one["pods"], one["gpus"]) for one in row.shapes] == [(1, 1), (1, 4)]


def test_pod_of_a_group_without_gpus_comes_along_and_takes_none(world: World) -> None:
    for number, gpus in enumerate((0, 4)):
        pod(world, f"p{number}", group="pair", total=2, gpus=gpus)
    world.cycles_until(lambda: runs(world, "pair"))

    row = world.row("pair")
    assert (row.gpus, row.members, row.shapes) == (4000, 1, [])


def test_people_hold_release_and_cancel_a_whole_group(world: World) -> None:
    Queue.objects.filter(name="research").update(stop="hold")
    for number in range(2):
        pod(world, f"p{number}", group="pair", total=2)
    world.cycle()
    workloads.hold(world.row("pair"), user="ann")
    Queue.objects.filter(name="research").update(stop="none")
    world.cycle()
    assert gated(world, "p0")

    workloads.release(world.row("pair"), user="ann")
    world.cycles_until(lambda: runs(world, "pair"))
    workloads.cancel(world.row("pair"), user="ann")
    assert world.kube.get(PODS)["items"] == []


def test_group_of_more_pods_than_it_says_waits_with_a_remedy(world: World) -> None:
    for name in ("a", "b", "c"):
        pod(world, name, group="g", total=2, gpus=8)
    for _ in range(3):
        world.cycle()

    assert all(gated(world, name) for name in ("a", "b", "c"))
    assert read(world, "a")["metadata"]["annotations"]["weir.dev/sentence"] == (
        "3 pods are in its group, which says it has 2. Set weir.dev/pod-group-total to what it has,"
        " or give other pods another group."
    )


def test_pods_on_top_of_a_running_group_stay_at_the_gate(world: World) -> None:
    for name in ("a", "b"):
        pod(world, name, group="g", total=2)
    world.cycles_until(lambda: world.row("g").state == State.RUNNING)
    pod(world, "c", group="g", total=2)
    for _ in range(2):
        world.cycle()
    assert (gated(world, "c"), world.row("g").members) == (True, 2)

    world.kube.delete(f"{PODS}/a")
    world.cycles_until(lambda: not gated(world, "c"))
