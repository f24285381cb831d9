"""What goes wrong between a plan and the cluster, and that it ends in the same state all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.cluster.connection import client as client_module
from scheduling.cluster.connection.client import ApiError
from scheduling.cluster.enforcement.enforcer import Enforcer
from scheduling.models import Cycle, Decision, Eviction, Quota, State, Transition
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from tests.scheduling.auditing import audited
from tests.scheduling.killing import LEASE, KilledError, die_at_write, restart
from tests.scheduling.kube import JOBS, World, eventually

S = State


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "BACK_OFF_S", (0.001, 0.01))


@pytest.fixture(autouse=True)
def nothing_exceeded(world: World) -> Iterator[None]:
    """Both queues may borrow whatever the other leaves, no node more than it has."""
    Quota.objects.update(borrowing_limit_gpus=8000)
    with audited(world):
        yield


def running(world: World, *names: str) -> bool:
    return all(world.row(name).state == S.RUNNING for name in names)


def picture(world: World) -> dict[str, Any]:
    jobs = {
        job["metadata"]["name"]: (
            job["spec"]["suspend"],
            job["metadata"]["annotations"].get("weir.dev/gpu-class"),
            job["metadata"]["annotations"].get("weir.dev/reason"),
        )
        for job in world.kube.get(JOBS)["items"]
    }
    rows = {w.name: (w.state, w.eviction_count) for w in world.cluster.workloads.all()}
    steps = {w.name: world.states(w.name) for w in world.cluster.workloads.all()}
    events = {name: sorted(world.events(name)) for name in rows}
    return {"jobs": jobs, "rows": rows, "steps": steps, "events": events}


def stage(world: World) -> None:
    """Two borrow all of the other queue's GPUs; then the owner comes, and a stray."""
    world.job("a", gpus=8)
    world.job("b", gpus=8)
    world.cycles_until(lambda: running(world, "a", "b"))
    world.job("owner", gpus=8, queue="products")
    world.job("stray", queue="nowhere")
    world.catch_up()


def finish(world: World) -> None:
    world.cycles_until(lambda: running(world, "owner"))
    world.cycle()
    world.cycle()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_killed_at_a_write_and_run_again_ends_in_the_same_state(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
) -> None:
    stage(world)
    with monkeypatch.context() as fragile:
        die_at_write(fragile, number, after=after)
        with pytest.raises(KilledError):
            run_cycle(world.cluster.pk)
    restart(world)
    finish(world)

    end = picture(world)
    victim = Eviction.objects.get().workload.name
    survivor = ({"a", "b"} - {victim}).pop()
    assert end["rows"] == {
        victim: (S.REQUEUED, 1),
        survivor: (S.RUNNING, 0),
        "owner": (S.RUNNING, 0),
        "stray": (S.PENDING, 0),
    }
    assert end["steps"]["owner"] == [S.PENDING, S.ADMITTED, S.RUNNING]
    assert end["steps"][victim] == [
        S.PENDING, S.ADMITTED, S.RUNNING, S.EVICTED, S.REQUEUED,
    ]  # fmt: skip
    assert end["jobs"]["owner"][:2] == (False, "h100")
    assert end["jobs"][victim][:2] == (True, None)
    assert end["events"]["stray"] == ["Misrouted"]


def test_killed_while_recording_leaves_no_half_plan(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job("w1")
    with monkeypatch.context() as fragile:
        fragile.setattr(
            "scheduling.services.cycle.record.plan._tell",
            lambda done: (_ for _ in ()).throw(KilledError),
        )
        with pytest.raises(KilledError):
            world.cycle()

    assert (Cycle.objects.count(), Decision.objects.count(), Transition.objects.count()) == (
        0,
        0,
        0,
    )
    assert world.read("w1")["spec"]["suspend"]
    world.cycles_until(lambda: running(world, "w1"))


def test_conflicting_writes_are_decided_anew(world: World) -> None:
    world.cycle()
    for i in range(8):
        world.job(f"w{i}")
    world.server.faults.configure(conflict=0.4, path="/jobs/", seed=3)
    world.cycles_until(lambda: running(world, *(f"w{i}" for i in range(8))))


def test_edit_between_plan_and_write_is_not_overrun(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.cycle()
    world.job("w1", gpus=2)
    world.catch_up()
    carry_out = Enforcer.carry_out

    def edited_first(self: Any, *acts: Any, **more: Any) -> Any:
        world.edit("w1", {"spec": {"parallelism": 3, "completions": 3}})
        return carry_out(self, *acts, **more)

    with monkeypatch.context() as late:
        late.setattr(Enforcer, "carry_out", edited_first)
        run_cycle(world.cluster.pk)
    assert world.read("w1")["spec"]["suspend"]

    world.cycles_until(lambda: running(world, "w1"))
    assert world.row("w1").members == 3


def test_busy_and_failing_server_delays_but_loses_nothing(world: World) -> None:
    world.cycle()
    world.server.faults.configure(
        too_many=0.1,
        server_error=0.15,
        dropped_watch=0.5,
        drop_within_s=0.2,
        retry_after_s=0,
        seed=7,
    )
    for i in range(6):
        world.job(f"w{i}", gpus=2)

    def attempt() -> bool:
        try:
            run_cycle(world.cluster.pk)
        except ApiError:
            return False
        return world.cluster.workloads.count() == 6 and running(world, *(f"w{i}" for i in range(6)))

    eventually(attempt)


def test_refused_admission_is_reported_and_stops_no_other(world: World) -> None:
    world.cycle()
    world.job("w1")
    world.job("w2")
    world.server.faults.configure(server_error=1.0, path="/jobs/w1$", verbs=["PUT"])
    result = world.cycle()

    assert set(result.failed or {}) == {"default/w1"}
    world.catch_up()
    assert world.row("w2").state in (S.ADMITTED, S.RUNNING)
    world.server.faults.clear()
    world.cycles_until(lambda: running(world, "w1", "w2"))


def test_lease_lost_in_mid_plan_stops_the_writes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.cycle()
    for i in range(4):
        world.job(f"w{i}")
    world.catch_up()
    worker = workers._turns[world.cluster.pk]
    starts, one_by_one, written = worker.link.enforcer.starts, threading.Lock(), []
    write = starts._write

    def steal_after_two(act: Any) -> Any:
        with one_by_one:
            if len(written) == 2:
                stolen = world.kube.get(LEASE)
                stolen["spec"]["holderIdentity"] = "thief"
                stolen["spec"]["renewTime"] = "2999-01-01T00:00:00.000000Z"
                world.kube.replace(LEASE, stolen)
                worker.link.lease._held_until = 0.0
            written.append(act.target.name)
            return write(act)

    monkeypatch.setattr(starts, "_write", steal_after_two)
    run_cycle(world.cluster.pk)

    suspended = [j["spec"]["suspend"] for j in world.kube.get(JOBS)["items"]]
    assert suspended.count(False) == 2
    assert run_cycle(world.cluster.pk).skipped == "lease"
