"""What enforcing makes of a plan: sizes, moves, starts that fail, and what people do to running Jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduling.cluster.enforcement.enforcer import Act, Enforcer, Report
from scheduling.engine import Outline
from scheduling.engine import model as m
from scheduling.engine.explain.decode import Starts
from scheduling.engine.snapshot.frame import Frame
from scheduling.engine.state.array_plan import ArrayPlan
from scheduling.models import Cluster, GpuClass, Queue, State
from scheduling.services.cycle import run as cycle
from scheduling.services.cycle.project import missing_members
from scheduling.services.snapshot import obstacles
from tests.scheduling.killing import restart
from tests.scheduling.kube import JOBS, World, add_node, eventually, node
from tests.scheduling.manifests import node_affinity
from workshop.testbed.kubelets import STOPPED

S = State
OUTLINE = cycle.outline
CARRY_OUT = Enforcer.carry_out


def running(world: World, *names: str) -> bool:
    return all(world.row(name).state == S.RUNNING for name in names)


def decide(monkeypatch: pytest.MonkeyPatch, *decisions: m.Decision) -> None:
    """The next plans say ``decisions`` for these workloads, whatever the engine thinks."""
    spoken_for = {d.workload for d in decisions}

    def outline(frame: Frame, plan: ArrayPlan, starts: Starts) -> Outline:
        made = OUTLINE(frame, plan, starts)
        rest = tuple(d for d in made.acts if d.workload not in spoken_for)
        assert spoken_for.isdisjoint(made.waits.names)
        return replace(made, acts=(*decisions, *rest))

    monkeypatch.setattr(cycle, "outline", outline)


def decide_freely(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next plans are the engine's own again."""
    monkeypatch.setattr(cycle, "outline", OUTLINE)


def sized(action: m.Action, name: str, **placement: int) -> m.Decision:
    reason = {
        m.Action.GROW: m.Reason.GROWS,
        m.Action.SHRINK: m.Reason.SHRINKS,
        m.Action.MOVE: m.Reason.CONSOLIDATES,
    }[action]
    members = sum(placement.values())
    return m.Decision(
        f"default/{name}",
        action,
        reason,
        "As planned.",
        queue="research",
        gpu_class="h100",
        members=members,
        placement=placement,
    )


def evicted(name: str) -> m.Decision:
    return m.Decision(f"default/{name}", m.Action.EVICT, m.Reason.RECLAIMED, "As planned.")


def pods(world: World, name: str) -> list[Any]:
    found = world.kube.get("/api/v1/namespaces/default/pods")["items"]
    return [p for p in found if p["metadata"]["labels"]["job-name"] == name]


def nodes(world: World, name: str) -> list[str]:
    return sorted(p["spec"].get("nodeName", "") for p in pods(world, name))


def test_gang_grows_and_shrinks_while_it_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job("wide", gpus=4, pods=1, pods_max=4)
    world.cycles_until(lambda: running(world, "wide"))
    before = world.read("wide")["status"].get("failed", 0)

    decide(monkeypatch, sized(m.Action.SHRINK, "wide", n1=1))
    world.cycle()
    eventually(lambda: len(pods(world, "wide")) == 1)
    spec = world.read("wide")["spec"]
    assert (spec["parallelism"], spec["completions"]) == (1, 1)

    decide(monkeypatch, sized(m.Action.GROW, "wide", n1=2, n2=1))
    world.cycle()
    eventually(lambda: len(pods(world, "wide")) == 3 and all(nodes(world, "wide")))
    decide_freely(monkeypatch)
    world.cycles_until(lambda: world.row("wide").members >= 3)
    assert world.row("wide").max_members == 4
    assert world.read("wide")["status"].get("failed", 0) == before
    assert world.events("wide").count("Resized") >= 2


def test_starts_and_words_are_foreseen_but_not_what_makes_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, bool] = {}

    def carry_out(
        enforcer: Enforcer, phases: list[list[Act]], words: list[Act], **options: Any
    ) -> Report:
        written.update({a.target.name: a.is_foreseen for acts in (*phases, words) for a in acts})
        return CARRY_OUT(enforcer, phases, words, **options)

    world.job("victim", gpus=4)
    world.cycles_until(lambda: running(world, "victim"))
    monkeypatch.setattr(Enforcer, "carry_out", carry_out)
    decide(monkeypatch, evicted("victim"))
    world.job("starts", gpus=1)
    world.job("waits", gpus=64)
    world.cycle()

    assert written == {"victim": False, "starts": True, "waits": True}


def kept(world: World, name: str) -> Any:
    """What Weir writes of a Job; its status is the controller's."""
    body = world.read(name)
    return body["metadata"]["generation"], body["metadata"]["annotations"], body["spec"]


def test_resize_to_the_size_it_has_writes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job("wide", gpus=4, pods=1, pods_max=2)
    world.cycles_until(lambda: running(world, "wide"))
    world.cycle()
    before = kept(world, "wide")

    decide(monkeypatch, sized(m.Action.GROW, "wide", n1=2))
    world.cycle()
    assert kept(world, "wide") == before


def test_moved_gang_leaves_its_nodes_and_starts_where_its_place_was_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job("w1", gpus=4, grace_s=1)
    world.cycles_until(lambda: running(world, "w1"))
    (old,) = nodes(world, "w1")
    new = {"n1": "n2", "n2": "n1"}[old]

    decide(monkeypatch, sized(m.Action.MOVE, "w1", **{new: 1}))
    world.cycle()
    decide_freely(monkeypatch)
    assert world.read("w1")["spec"]["suspend"]
    world.job("rival", gpus=8, queue="products")
    world.cycles_until(lambda: running(world, "w1", "rival"))

    assert (nodes(world, "w1"), nodes(world, "rival")) == ([new], [old])
    assert "weir.dev/moves-to" not in world.notes("w1")


def test_gang_held_on_its_way_is_planned_anew_once_released(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job("w1", gpus=4, grace_s=1)
    world.cycles_until(lambda: running(world, "w1"))
    (old,) = nodes(world, "w1")
    decide(monkeypatch, sized(m.Action.MOVE, "w1", **{{"n1": "n2", "n2": "n1"}[old]: 1}))
    world.cycle()
    decide_freely(monkeypatch)
    world.edit("w1", {"metadata": {"annotations": {"weir.dev/hold": "true"}}})
    world.cycles_until(lambda: "weir.dev/moves-to" not in world.notes("w1"))
    assert world.read("w1")["spec"]["suspend"]

    world.edit("w1", {"metadata": {"annotations": {"weir.dev/hold": None}}})
    world.cycles_until(lambda: running(world, "w1"))


def test_move_to_a_node_that_is_gone_is_planned_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job("w1", gpus=4)
    world.cycles_until(lambda: running(world, "w1"))

    decide(monkeypatch, sized(m.Action.MOVE, "w1", n9=1))
    world.cycle()
    decide_freely(monkeypatch)
    world.cycles_until(lambda: running(world, "w1"))
    assert set(nodes(world, "w1")) <= {"n1", "n2"}


def test_gang_that_does_not_start_in_time_waits_longer_each_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing_members, "UNSEEN_PODS_S", 0.0)
    monkeypatch.setattr(obstacles, "START_BACK_OFF_S", (0.5, 60.0))
    Cluster.objects.update(stale_gang_grace_s=0)
    job = world.manifest("stuck", gpus=1)
    job["spec"]["template"]["spec"]["schedulerName"] = "nobody"
    world.kube.create("/apis/batch/v1/namespaces/default/jobs", job)

    world.cycles_until(lambda: world.notes("stuck").get("weir.dev/start-failures") == "1")
    assert world.read("stuck")["spec"]["suspend"]
    world.cycles_until(lambda: world.row("stuck").reason == "gang_incomplete")
    assert "not all ready in time" in world.row("stuck").sentence
    world.cycles_until(lambda: world.notes("stuck").get("weir.dev/start-failures") == "2")
    assert "Evicted" in world.events("stuck")


def test_time_to_start_counts_from_the_admission_whoever_watches(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing_members, "UNSEEN_PODS_S", 2.0)
    Cluster.objects.update(stale_gang_grace_s=0)
    job = world.manifest("stuck", gpus=1)
    job["spec"]["template"]["spec"]["schedulerName"] = "nobody"
    world.kube.create(JOBS, job)
    world.cycle()

    def failed() -> bool:
        restart(world)
        return world.notes("stuck").get("weir.dev/start-failures") == "1"

    world.cycles_until(failed)


@pytest.mark.real
def test_gang_whose_pods_are_bound_and_do_not_run_is_started_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No kubelet starts them, as where an image cannot be pulled. Their GPUs are nobody's till they go."""
    monkeypatch.setattr(missing_members, "UNSEEN_PODS_S", 0.0)
    Cluster.objects.update(stale_gang_grace_s=1)
    for name in ("n1", "n2"):
        world.kube.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": {STOPPED: "true"}}})
    world.job("stuck", gpus=8, pods=2, grace_s=2)
    world.cycles_until(lambda: world.notes("stuck").get("weir.dev/start-failures") == "1")
    world.job("next", gpus=1)
    world.cycle()

    assert "None of the 2 members" in world.row("stuck").transitions.latest("id").sentence
    assert world.read("next")["spec"]["suspend"]
    for name in ("n1", "n2"):
        world.kube.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": {STOPPED: None}}})
    world.cycles_until(lambda: running(world, "next"))


def test_running_job_made_larger_by_hand_is_cut_back(world: World) -> None:
    world.job("w1", gpus=2, pods=2)
    world.cycles_until(lambda: running(world, "w1"))
    world.edit("w1", {"spec": {"parallelism": 6, "completions": 6}})
    world.cycle()

    spec = world.read("w1")["spec"]
    assert (spec["parallelism"], spec["completions"]) == (2, 2)
    assert "Resized" in world.events("w1")


def test_running_job_made_smaller_by_hand_holds_less(world: World) -> None:
    world.job("w1", gpus=2, pods=4)
    world.cycles_until(lambda: running(world, "w1"))
    world.edit("w1", {"spec": {"parallelism": 2, "completions": 2}})

    world.cycles_until(lambda: world.row("w1").members == 2)
    assert world.row("w1").max_members == 2


def test_evicted_job_starts_again_on_a_class_of_another_resource(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = {"nvidia.com/mig-1g.5gb": "7", "cpu": "32", "memory": "64Gi", "pods": "110"}
    mig = node("m1", gpu="a100")
    mig["status"] |= {"capacity": resources, "allocatable": resources}
    add_node(world.kube, mig)
    job = world.manifest("w1", gpus=1)
    job["metadata"]["annotations"]["weir.dev/gpu-classes"] = "mig,h100"
    GpuClass.objects.create(
        cluster=world.cluster, name="mig", resource_name="nvidia.com/mig-1g.5gb"
    )
    for queue in world.cluster.queues.all():
        queue.quotas.update_or_create(
            gpu_class=GpuClass.objects.get(name="mig"),
            defaults={
                "nominal_gpus": 7000,
                "effective_from": world.cluster.now() - timedelta(days=1),
            },
        )
    world.kube.create("/apis/batch/v1/namespaces/default/jobs", job)
    world.cycles_until(lambda: running(world, "w1"))
    assert nodes(world, "w1") == ["m1"]
    container = world.read("w1")["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"nvidia.com/mig-1g.5gb": "1"}

    elsewhere = sized(m.Action.MOVE, "w1", n2=1)
    decide(monkeypatch, elsewhere)
    world.cycle()
    decide_freely(monkeypatch)
    world.cycles_until(lambda: running(world, "w1"))
    assert nodes(world, "w1") == ["n2"]
    container = world.read("w1")["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}


def test_where_a_person_sends_an_evicted_job_is_where_it_runs_next(world: World) -> None:
    world.job("w1", gpus=1)
    world.cycles_until(lambda: running(world, "w1"))
    left = {"n1": "n2", "n2": "n1"}[nodes(world, "w1")[0]]
    Queue.objects.filter(name="research").update(stop="drain")
    world.cycles_until(
        lambda: (
            "affinity" not in world.read("w1")["spec"]["template"]["spec"]
            and "weir.dev/original" not in world.notes("w1")
        )
    )

    affinity = node_affinity("kubernetes.io/hostname", left)
    toleration = {"key": "mine", "operator": "Exists", "effect": "NoSchedule"}
    pod = {"affinity": affinity, "tolerations": [toleration]}
    world.edit("w1", {"spec": {"template": {"spec": pod}}})
    other = {"n1": "n2", "n2": "n1"}[left]
    world.kube.patch(f"/api/v1/nodes/{other}", {"spec": {"unschedulable": True}})
    Queue.objects.filter(name="research").update(stop="none")
    world.cycles_until(lambda: running(world, "w1"))

    assert nodes(world, "w1") == [left]
    assert toleration in world.read("w1")["spec"]["template"]["spec"]["tolerations"]


def test_refused_admission_says_so_and_is_tried_less_often(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.services.snapshot.obstacles.REFUSED_BACK_OFF_S", (60.0, 600.0))
    world.job("w2", gpus=1)
    admission = "scheduling.cluster.adapters.job.JobAdapter.admission"
    monkeypatch.setattr(admission, lambda *_: {"metadata": {}, "spec": {"backoffLimit": -1}})
    world.cycle()
    failed = world.cycle()

    assert not failed.failed
    assert world.row("w2").reason == "never_fits"
    assert "refuses to start it" in world.row("w2").sentence


def test_admission_leaves_alone_what_others_wrote_on_the_job(world: World) -> None:
    """The whole object is put back, so what nobody here reads has to come back with it."""
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    manifest = world.manifest("w1")
    manifest["metadata"].setdefault("annotations", {})[applied] = "{}"
    manifest["spec"]["template"]["spec"]["hostname"] = "trainer"
    world.kube.create(JOBS, manifest)
    world.cycle()

    job = world.kube.get(f"{JOBS}/w1")
    assert not job["spec"]["suspend"]
    assert job["metadata"]["annotations"][applied] == "{}"
    assert job["spec"]["template"]["spec"]["hostname"] == "trainer"
