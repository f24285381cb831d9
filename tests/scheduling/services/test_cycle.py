"""From the cluster to the plan and back, against an API server over HTTP."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from scheduling.cluster.connection.mirror import Mirror
from scheduling.models import (
    Cluster,
    ClusterMode,
    Cycle,
    Decision,
    Eviction,
    Node,
    Outcome,
    PriorityClass,
    Queue,
    Quota,
    Share,
    State,
)
from scheduling.services.cycle import run as cycle
from scheduling.services.cycle.record import plan as telling
from scheduling.services.cycle.record import shares as share_rows
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from tests.scheduling.kube import JOBS, World, add_node, eventually, node
from workshop.testbed.server import EmbeddedServer

S = State


@pytest.fixture
def requests(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every request the server sees, as (method, path)."""
    heard: list[tuple[str, str]] = []
    strike = server.faults.strike

    def listen(method: str, path: str) -> float:
        heard.append((method, path))
        return strike(method, path)

    monkeypatch.setattr(server.faults, "strike", listen)
    return heard


def writes(requests: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(m, p) for m, p in requests if m != "GET"]


def running(world: World, *names: str) -> bool:
    return all(world.row(name).state == S.RUNNING for name in names)


def test_suspended_job_is_admitted_runs_and_finishes(world: World) -> None:
    world.job("w1", gpus=4, pods=2, run_s=2)
    world.cycle()
    eventually(lambda: world.read("w1")["status"].get("completionTime"))
    world.cycle()

    row = world.row("w1")
    assert world.read("w1")["status"]["succeeded"] == 2
    assert world.states("w1") == [S.PENDING, S.ADMITTED, S.RUNNING, S.FINISHED]
    assert (row.outcome, row.members, row.gpu_class.name) == (Outcome.SUCCEEDED, 2, "h100")
    assert row.used_gpu_s >= 8  # 8 GPUs for 2 s, less what whole-second stamps cut off


def test_admission_puts_the_gang_where_the_plan_says(world: World) -> None:
    world.job("w1", gpus=8, pods=2)
    world.cycle()

    spec = world.read("w1")["spec"]["template"]["spec"]
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = {e["key"]: e["values"] for e in terms["nodeSelectorTerms"][0]["matchExpressions"]}
    assert keys == {"gpu": ["h100"], "kubernetes.io/hostname": ["n1", "n2"]}
    world.cycles_until(lambda: running(world, "w1"))
    assert world.row("w1").placement == {"n1": 1, "n2": 1}
    assert [n.allocated_gpus for n in Node.objects.all()] == [8000, 8000]


def test_waiting_job_is_told_why_on_the_object_and_in_the_row(world: World) -> None:
    world.job("first", gpus=8, pods=2)
    world.job("second", gpus=8)
    world.cycle()

    row = world.row("second")
    assert row.state == S.PENDING
    assert row.reason
    assert row.position == 1
    notes = world.notes("second")
    assert notes["weir.dev/reason"] == row.reason
    assert notes["weir.dev/sentence"] == row.sentence
    assert notes["weir.dev/position"] == "1"
    assert world.events("first") == ["Admitted"]
    assert world.events("second") == ["Pending"]


def test_starts_past_a_cycles_measure_are_planned_anew_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle, "ADMISSIONS", 2)
    for i in range(3):
        world.job(f"w{i}")
    world.cycle()
    assert [world.read(f"w{i}")["spec"]["suspend"] for i in range(3)] == [False, False, True]
    assert Decision.objects.filter(action="admit").count() == 2
    put_off = world.row("w2")
    assert (put_off.state, put_off.reason, put_off.position) == (S.PENDING, "waits_for_turn", None)
    assert world.notes("w2")["weir.dev/sentence"] == put_off.sentence

    world.cycle()
    assert not world.read("w2")["spec"]["suspend"]


def test_observed_cluster_is_told_every_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    monkeypatch.setattr(cycle, "ADMISSIONS", 1)
    for i in range(3):
        world.job(f"w{i}")
    world.cycle()
    assert Decision.objects.filter(action="admit").count() == 3


def test_starts_past_a_cycles_measure_leave_half_of_it_to_the_highest_priority(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    PriorityClass.objects.create(name="urgent", value=90)
    world.job("runs", gpus=4)
    world.cycle()
    monkeypatch.setattr(cycle, "ADMISSIONS", 2)
    for i in range(3):
        world.job(f"w{i}", queue="products")
    world.job("first", priority_class="urgent")
    world.cycle()

    names = ("w0", "w1", "w2", "first")
    assert [world.read(name)["spec"]["suspend"] for name in names] == [False, True, True, False]


def test_long_line_is_told_in_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "TOLD_ROWS", 1)
    monkeypatch.setattr(telling, "MOVED_ROWS", 1)
    monkeypatch.setattr(telling, "TOLD_EVERY_S", 0.0)
    world.job("first", gpus=8, pods=2)
    for i in range(3):
        world.job(f"w{i}", gpus=8)
    world.cycle()
    assert [bool(world.row(f"w{i}").reason) for i in range(3)] == [True, False, False]

    world.cycle()
    world.cycle()
    assert [world.row(f"w{i}").position for i in range(3)] == [1, 2, 3]


def test_second_pass_on_a_settled_cluster_writes_nothing(
    world: World, requests: list[tuple[str, str]]
) -> None:
    for i in range(3):
        world.job(f"w{i}", gpus=8)
    world.job("lost", queue="nowhere")
    world.cycles_until(lambda: running(world, "w0", "w1"))
    world.cycle()
    world.catch_up()
    cycles, decisions = Cycle.objects.count(), Decision.objects.count()
    requests.clear()
    result = run_cycle(world.cluster.pk)

    assert writes(requests) == []
    assert (result.written, result.decisions) == (0, 0)
    assert Decision.objects.count() == decisions
    run_cycle(world.cluster.pk)
    assert Cycle.objects.count() <= cycles + 1


def test_quiet_cycles_leave_one_row_that_moves_on(world: World) -> None:
    world.cycle()
    first = Cycle.objects.get()
    for _ in range(3):
        world.cycle()

    last = Cycle.objects.get()
    assert (last.pk, last.number) == (first.pk, first.number + 3)


def test_cycle_notes_how_far_behind_the_cluster_its_picture_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job("w1", gpus=4)
    monkeypatch.setattr(Mirror, "lag_s", lambda _: 2.64)
    world.cycle()
    assert Cycle.objects.get().lag_s == 2.6


def test_observe_mode_plans_shows_and_writes_nothing(
    world: World, requests: list[tuple[str, str]]
) -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    world.job("w1", gpus=4)
    world.job("loose", gpus=2, suspend=False)
    world.job("lost", queue="nowhere")
    requests.clear()
    for _ in range(3):
        run_cycle(world.cluster.pk)
        world.catch_up()

    assert writes(requests) == []
    assert world.row("w1").reason == "fits_nominal"
    assert world.row("w1").state == S.PENDING
    assert world.row("loose").state == S.RUNNING
    assert world.row("lost").reason == "misrouted"
    assert Decision.objects.filter(workload__name="w1").count() == 1


def test_paused_cluster_is_left_alone(world: World, requests: list[tuple[str, str]]) -> None:
    Cluster.objects.update(mode=ClusterMode.PAUSED)

    assert run_cycle(world.cluster.pk).skipped == "paused"
    assert requests == []


def test_label_that_names_no_queue_shows_as_misrouted_with_an_event(world: World) -> None:
    world.job("lost", queue="nowhere")
    world.cycle()
    world.cycle()

    row = world.row("lost")
    assert (row.state, row.queue, row.queue_label, row.reason) == (
        S.PENDING, None, "nowhere", "misrouted",
    )  # fmt: skip
    assert "nowhere" in row.sentence
    assert world.events("lost") == ["Misrouted"]
    assert world.notes("lost")["weir.dev/reason"] == "misrouted"


def test_relabelled_job_finds_its_queue(world: World) -> None:
    world.job("lost", queue="nowhere")
    world.cycle()
    world.edit("lost", {"metadata": {"labels": {"weir.dev/queue": "research"}}})
    world.cycle()

    assert world.row("lost").queue.name == "research"
    assert not world.read("lost")["spec"]["suspend"]


def test_job_taken_out_of_its_queue_and_put_back_is_queued_again(world: World) -> None:
    world.job("w1", queue="nowhere")
    world.cycle()
    world.edit("w1", {"metadata": {"labels": {"weir.dev/queue": None}}})
    world.cycle()
    row = world.row("w1")
    assert (row.state, row.outcome) == (S.FINISHED, Outcome.CANCELLED)
    assert row.transitions.last().sentence == "It names no queue any more, or what made it does."

    world.edit("w1", {"metadata": {"labels": {"weir.dev/queue": "research"}}})
    world.cycles_until(lambda: running(world, "w1"))
    assert (world.row("w1").outcome, world.row("w1").finished_at) == ("", None)
    assert world.states("w1")[:3] == [S.PENDING, S.FINISHED, S.REQUEUED]


def test_running_job_out_of_its_queue_for_a_while_goes_on(world: World) -> None:
    world.job("w1", gpus=8)
    world.cycles_until(lambda: running(world, "w1"))
    for queue, held in ((None, 0), ("research", 8000)):
        world.edit("w1", {"metadata": {"labels": {"weir.dev/queue": queue}}})
        world.cycle()
        assert sum(n.allocated_gpus for n in Node.objects.all()) == held
        assert sum(n.foreign_gpus for n in Node.objects.all()) == 8000 - held

    world.cycles_until(lambda: running(world, "w1"))
    assert not world.read("w1")["spec"]["suspend"]


def test_reclaim_evicts_records_both_parties_and_admits_the_owner(world: World) -> None:
    world.job("big", gpus=8, pods=1)
    world.job("borrower", gpus=8, pods=1)
    world.cycles_until(lambda: running(world, "big", "borrower"))
    world.job("owner", gpus=8, queue="products")
    world.cycles_until(lambda: running(world, "owner"))

    eviction = Eviction.objects.select_related("workload", "for_workload", "queue").get()
    assert (eviction.rule, eviction.queue.name, eviction.for_workload.name) == (
        "reclaim", "research", "owner",
    )  # fmt: skip
    assert (eviction.gpus, eviction.asked_gpus) == (8000, 8000)
    assert eviction.numbers["victim_held_before"] == 16
    assert eviction.numbers["victim_held_after"] == 8
    assert eviction.numbers["for_held_before"] == 0
    assert eviction.numbers["victim_fair_share"] == 8
    victim = eviction.workload
    assert world.states(victim.name)[3:5] == [S.EVICTED, S.REQUEUED]
    assert (victim.eviction_count, victim.state) == (1, S.REQUEUED)
    assert "Evicted" in world.events(victim.name)
    assert world.read(victim.name)["spec"]["suspend"]


def test_evicted_job_comes_back_to_another_node(world: World) -> None:
    world.job("w1", gpus=8)
    world.cycles_until(lambda: running(world, "w1"))
    Queue.objects.filter(name="research").update(stop="drain")
    world.cycles_until(lambda: world.row("w1").state == S.REQUEUED)
    world.kube.patch("/api/v1/nodes/n1", {"spec": {"unschedulable": True}})
    Queue.objects.filter(name="research").update(stop="none")
    world.cycles_until(lambda: running(world, "w1"))

    assert world.row("w1").placement == {"n2": 1}
    terms = world.read("w1")["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    required = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert len(required[0]["matchExpressions"]) == 2


def test_deleted_while_running_ends_as_cancelled(world: World) -> None:
    world.job("w1", gpus=8, pods=2)
    world.cycles_until(lambda: running(world, "w1"))
    world.kube.delete(f"{JOBS}/w1", {"propagationPolicy": "Background"})
    world.cycles_until(lambda: world.row("w1").state == S.FINISHED)

    assert world.row("w1").outcome == Outcome.CANCELLED


def test_deleted_and_made_anew_is_another_workload(world: World) -> None:
    world.job("w1", gpus=2)
    world.cycle()
    world.kube.delete(f"{JOBS}/w1", {"propagationPolicy": "Background"})
    eventually(lambda: not world.kube.get(JOBS)["items"])
    world.job("w1", gpus=1)
    world.cycle()

    rows = world.cluster.workloads.order_by("id")
    assert next(r.state for r in rows) == S.FINISHED
    assert [r.gpus for r in rows] == [2000, 1000]


def test_suspended_by_hand_is_held_until_released(world: World) -> None:
    world.job("w1", gpus=2)
    world.cycles_until(lambda: running(world, "w1"))
    world.edit("w1", {"spec": {"suspend": True}})
    world.cycles_until(lambda: world.row("w1").state == S.REQUEUED)
    world.cycle()

    row = world.row("w1")
    assert (row.held, row.reason) == (True, "held")
    assert Eviction.objects.count() == 0
    assert world.read("w1")["spec"]["suspend"]
    world.edit("w1", {"metadata": {"annotations": {"weir.dev/hold": None}}})
    world.cycles_until(lambda: running(world, "w1"))


def test_unsuspended_past_the_queue_is_suspended_again_with_an_event(world: World) -> None:
    Queue.objects.filter(name="research").update(stop="hold")
    world.job("w1", gpus=2)
    world.cycle()
    world.edit("w1", {"spec": {"suspend": False}})
    world.cycle()

    assert world.read("w1")["spec"]["suspend"]
    assert world.row("w1").state == S.PENDING
    assert "Resuspended" in world.events("w1")
    Queue.objects.filter(name="research").update(stop="none")
    world.cycles_until(lambda: running(world, "w1"))


def test_created_unsuspended_waits_its_turn_like_all_others(world: World) -> None:
    world.cycle()
    world.job("eager", gpus=2, suspend=False)
    world.cycle()
    assert world.read("eager")["spec"]["suspend"]

    world.cycles_until(lambda: running(world, "eager"))
    assert world.events("eager")[:1] == ["Resuspended"]


def test_work_that_ran_before_enforcing_is_adopted(world: World) -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    world.job("old", gpus=8, suspend=False)
    world.cycles_until(lambda: running(world, "old"))
    Cluster.objects.update(mode=ClusterMode.ENFORCE)
    world.cycle()
    world.cycle()

    assert not world.read("old")["spec"]["suspend"]
    assert world.notes("old")["weir.dev/gpu-class"] == "h100"
    assert world.row("old").state == S.RUNNING


def test_pods_outside_the_queues_are_foreign(world: World) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "notebook"},
        "spec": {
            "nodeName": "n1",
            "containers": [
                {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "3"}}}
            ],
        },
    }
    world.kube.create("/api/v1/namespaces/default/pods", pod)
    world.job("w1", gpus=8)
    world.job("w2", gpus=8, queue="products")
    world.cycle()
    world.cycle()

    assert Node.objects.get(name="n1").foreign_gpus == 3000
    assert [world.read(w)["spec"]["suspend"] for w in ("w1", "w2")].count(True) == 1


def test_elastic_job_is_sized_by_the_plan_and_keeps_its_own_maximum(world: World) -> None:
    world.job("wide", gpus=8, pods=1, pods_max=4)
    world.cycles_until(lambda: running(world, "wide"))

    row, spec = world.row("wide"), world.read("wide")["spec"]
    assert (row.min_members, row.max_members) == (1, 4)
    assert spec["parallelism"] == spec["completions"] == row.members <= 2


def test_shares_and_root_capacity_are_recorded(world: World) -> None:
    world.job("w1", gpus=8)
    world.cycle()
    add_node(world.kube, node("n3"))
    world.kube.patch("/api/v1/nodes/n3", {"spec": {"unschedulable": True}})
    world.cycle()

    root = Share.objects.get(queue__parent=None)
    assert (root.nominal, root.fair_share) == (24000, 16000)
    research = Share.objects.get(queue__name="research")
    assert (research.allocated, research.nominal) == (8000, 8000)


def test_usage_of_many_queues_is_written_now_and_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def used() -> float:
        return Share.objects.get(queue__name="research").usage

    Cluster.objects.update(usage_half_life_s=1)
    world.job("w1", gpus=8)
    world.cycles_until(lambda: running(world, "w1"))
    world.cycles_until(lambda: used() > 0)
    monkeypatch.setattr(share_rows, "FEW", 0)
    monkeypatch.setattr(share_rows, "WRITTEN_EVERY_S", 3600.0)
    world.cycle()
    before = used()
    time.sleep(0.05)
    world.cycle()
    assert used() == before

    monkeypatch.setattr(share_rows, "WRITTEN_EVERY_S", 0.0)
    world.cycle()
    assert used() > before


def test_share_of_a_queue_that_is_gone_counts_no_more(world: World) -> None:
    world.cycle()
    Quota.objects.filter(queue__name="products").delete()
    Queue.objects.get(name="products").delete()
    world.cycle()

    assert {s.queue.name for s in Share.objects.all()} == {"root", "research"}


def test_two_workers_never_both_write(world: World, requests: list[tuple[str, str]]) -> None:
    world.job("w1", gpus=1)
    world.cycle()
    first = workers._turns.pop(world.cluster.pk)
    world.job("w2", gpus=1)
    requests.clear()

    assert run_cycle(world.cluster.pk).skipped == "lease"
    assert writes(requests) == []
    workers.close_all()
    workers._turns[world.cluster.pk] = first
    world.cycle()
    assert not world.read("w2")["spec"]["suspend"]


def test_second_cycle_at_the_same_time_steps_aside(world: World) -> None:
    world.cycle()
    worker = workers._turns[world.cluster.pk]
    assert worker.turn.take()
    assert run_cycle(world.cluster.pk).skipped == "busy"
    worker.turn.give_back()


def test_revision_rises_only_when_something_visible_changed(world: World) -> None:
    world.job("w1", gpus=8)
    world.cycles_until(lambda: running(world, "w1"))
    world.cycle()
    before = Cluster.objects.get().revision
    world.cycle()
    assert Cluster.objects.get().revision == before

    world.job("w2", gpus=8)
    world.cycle()
    assert Cluster.objects.get().revision > before


def test_ended_and_cleaned_up_between_two_looks_is_no_cancellation(world: World) -> None:
    job = world.manifest("brief", run_s=0.2)
    job["spec"]["ttlSecondsAfterFinished"] = 0
    world.kube.create(JOBS, job)
    world.cycle()
    eventually(lambda: not world.kube.get(JOBS)["items"])
    world.cycle()

    assert world.row("brief").outcome == Outcome.SUCCEEDED
    assert world.states("brief") == [S.PENDING, S.ADMITTED, S.RUNNING, S.FINISHED]


def test_row_of_passes_that_change_nothing_keeps_the_slowest_of_an_hour(world: World) -> None:
    world.cycle()
    rows = Cycle.objects.count()
    Cycle.objects.update(slowest_ms=9e9)
    world.cycle()
    newest = Cycle.objects.latest("number")
    assert (Cycle.objects.count(), newest.slowest_ms) == (rows, 9e9)
    assert 0 < newest.took_ms < 9e9

    Cycle.objects.update(slowest_at=newest.at - timedelta(hours=2))
    world.cycle()
    newest = Cycle.objects.latest("number")
    assert (Cycle.objects.count(), newest.slowest_ms) == (rows + 1, newest.took_ms)
