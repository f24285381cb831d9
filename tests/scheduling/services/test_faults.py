"""One story under every fault: nothing is exceeded, lost or stuck, and it settles within 30 s.

Two nodes of 8 GPUs. ``research`` (nominal 8, at most 12) has four Jobs of 4 GPUs, three of which run.
Then a fault begins; under it the owner of the other half, ``products`` (nominal 8), asks for all of it,
one of the running Jobs is deleted by hand and another comes. When the fault is over, 8 GPUs of each
queue have to run, the rest waits with a reason, and Weir writes nothing more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine

from scheduling.cluster.connection import client as client_module
from scheduling.cluster.connection.client import ApiError
from scheduling.models import Cluster, Eviction, Quota, State
from scheduling.services.cycle.run import CycleResult
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from tests.scheduling.auditing import audited, gpus_of, jobs_of, put_under_one_roof
from tests.scheduling.killing import LEASE, KilledError, die_at_write, restart
from tests.scheduling.kube import JOBS, World, add_node, node
from tests.scheduling.real_server import RealServer
from workshop.testbed.kubelets import STOPPED

SETTLED_S = 60.0
"""After the end of a fault."""
COLLECTED_S = 120.0
"""Pods of a deleted node have 40 s of quarantine and wait for a round of the collector."""
DAY_S = 24 * 3600
QUEUES = ("research", "products")
Fault = Callable[[World], None]
"""Goes on for a while in a thread of its own, then returns and everything works again."""


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "BACK_OFF_S", (0.01, 0.2))


def cycle(world: World) -> CycleResult | None:
    """One cycle as the worker's task makes it: what the server refuses is left to the next."""
    try:
        return run_cycle(world.cluster.pk)
    except ApiError:
        return None


def insist(act: Callable[[], Any]) -> None:
    """What people do when a server does not take it."""
    until = time.monotonic() + SETTLED_S
    while True:
        try:
            act()
        except client_module.ConflictError as error:
            if error.reason == "AlreadyExists":
                return
        except client_module.NotFoundError:
            return
        except ApiError:
            pass
        else:
            return
        assert time.monotonic() < until, "the server never took it"
        time.sleep(0.05)


def running_gpus(world: World) -> dict[str, int]:
    """Queue -> GPUs of the workloads whose rows say that they run."""
    found = dict.fromkeys(QUEUES, 0)
    for row in world.cluster.workloads.filter(state=State.RUNNING).select_related("queue"):
        found[row.queue.name] += row.members * row.gpus // 1000
    return found


def is_settled(world: World, wanted: dict[str, int]) -> bool:
    """Rows and Jobs agree, what waits says why, and two cycles in a row had nothing to write."""
    quiet = [cycle(world), cycle(world)]
    if any(result is None or result.skipped or result.written for result in quiet):
        return False
    rows = {w.name: w for w in world.cluster.workloads.exclude(state=State.FINISHED)}
    jobs = {j["metadata"]["name"]: j for j in jobs_of(world.server)}
    agree = rows.keys() == jobs.keys() and all(
        (rows[name].state == State.RUNNING) == bool(gpus_of(job)) for name, job in jobs.items()
    )
    waiting = [w for w in rows.values() if w.state != State.RUNNING]
    told = all(w.state in (State.PENDING, State.REQUEUED) and w.reason for w in waiting)
    return agree and told and running_gpus(world) == wanted


def settle(world: World, wanted: dict[str, int]) -> None:
    until = time.monotonic() + SETTLED_S
    while not is_settled(world, wanted):
        states = {w.name: (w.state, w.reason) for w in world.cluster.workloads.all()}
        assert time.monotonic() < until, f"{running_gpus(world)} of {wanted}: {states}"
        time.sleep(0.1)


def for_a_while(**rules: Any) -> Fault:
    """The server answers by ``rules`` for three seconds."""

    def fault(world: World) -> None:
        world.server.faults.configure(seed=11, **rules)
        time.sleep(3)
        world.server.faults.clear()

    return fault


def restarted(world: World) -> None:
    """Gone with all its connections, back after a while."""
    if isinstance(world.server, RealServer):
        world.server.restart()
        return
    world.server.faults.configure(server_error=1.0)
    world.server.drop_connections()
    time.sleep(2)
    world.server.faults.clear()


def compacted(world: World) -> None:
    """History is forgotten while nobody watches, so that every watch has to begin anew."""
    world.server.faults.configure(server_error=1.0)
    world.server.drop_connections()
    world.server.compact()
    world.server.faults.clear()


def cut_watches(world: World) -> None:
    world.server.faults.configure(dropped_watch=1.0, drop_within_s=0.2)
    world.server.drop_connections()
    time.sleep(3)
    world.server.faults.clear()


def somebody_annotates(world: World) -> None:
    """A person (or a script of theirs) writes notes on every Job, all the time."""
    until = time.monotonic() + 3
    number = 0
    while time.monotonic() < until:
        for job in jobs_of(world.server):
            number += 1
            note = {"metadata": {"annotations": {"example.org/note": str(number)}}}
            with suppress(ApiError):
                world.kube.patch(f"{JOBS}/{job['metadata']['name']}", note)


def somebody_resizes(world: World) -> None:
    """A person makes what waits larger and smaller again: plans meet a demand that they were not made for."""
    until = time.monotonic() + 3
    while time.monotonic() < until:
        resize_waiting(world, pods=2)
        resize_waiting(world, pods=1)
    insist(lambda: resize_waiting(world, pods=1, heed=True))


def resize_waiting(world: World, *, pods: int, heed: bool = False) -> None:
    """As an editor saves it: refused where the Job is no longer what was read."""
    for job in jobs_of(world.server):
        meta = job["metadata"]
        if not job["spec"]["suspend"] or not meta["name"].startswith("r"):
            continue
        read = {"resourceVersion": meta["resourceVersion"]}
        wanted = {"metadata": read, "spec": {"parallelism": pods, "completions": pods}}
        try:
            world.kube.patch(f"{JOBS}/{meta['name']}", wanted)
        except ApiError:
            if heed:
                raise


def rival_works(world: World) -> None:
    """Another worker has taken the lease, keeps it for a while and dies without giving it back."""
    spec = {"holderIdentity": "rival", "leaseDurationSeconds": 15}
    until = time.monotonic() + 3
    while time.monotonic() < until:
        world.kube.patch(LEASE, {"spec": {**spec, "renewTime": f"{datetime.now(UTC):%FT%T.%fZ}"}})
        workers._turns[world.cluster.pk].link.lease._held_until = 0.0
        time.sleep(0.3)


FAULTS: dict[str, Fault] = {
    "restarted": restarted,
    "answers-409": for_a_while(conflict=0.5),
    "answers-429": for_a_while(too_many=0.5, retry_after_s=0),
    "answers-500": for_a_while(server_error=0.5),
    "answers-late": for_a_while(latency_s=0.5, jitter_s=1.0),
    "watches-cut": cut_watches,
    "history-compacted": compacted,
    "annotated-by-a-person": somebody_annotates,
    "resized-by-a-person": somebody_resizes,
    "lease-lost-to-a-rival": rival_works,
}


@pytest.fixture
def story(world: World) -> World:
    return begin(world)


def begin(world: World, grace_s: int = 0) -> World:
    """Three Jobs of ``research`` run, the fourth is past its limit."""
    Quota.objects.filter(queue__name="research").update(borrowing_limit_gpus=4000)
    for i in range(4):
        world.job(f"r{i}", gpus=4, grace_s=grace_s)
    settle(world, {"research": 12, "products": 0})
    return world


@contextmanager
def under(fault: Fault, world: World) -> Iterator[None]:
    """``fault`` goes on beside the block, and cycles do until it is over."""
    thread = threading.Thread(target=fault, args=(world,), daemon=True)
    thread.start()
    yield
    while thread.is_alive():
        cycle(world)
        time.sleep(0.05)


def people_act(world: World) -> None:
    gone = world.cluster.workloads.filter(state=State.RUNNING).order_by("name")[0].name
    insist(lambda: world.job("p0", gpus=4, pods=2, queue="products"))
    insist(lambda: world.kube.delete(f"{JOBS}/{gone}", {"propagationPolicy": "Background"}))
    insist(lambda: world.job("r4", gpus=4))


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_fault_passes_and_all_is_as_it_should_be(story: World, fault: Fault) -> None:
    with audited(story):
        with under(fault, story):
            people_act(story)
        settle(story, {"research": 8, "products": 8})


@pytest.mark.parametrize("skew_s", [-60, 60])
def test_clock_that_is_a_minute_off_changes_nothing(world: World, skew_s: int) -> None:
    Quota.objects.filter(queue__name="research").update(borrowing_limit_gpus=4000)
    with time_machine.travel(time.time() + skew_s), audited(world):
        for i in range(4):
            world.job(f"r{i}", gpus=4)
        settle(world, {"research": 12, "products": 0})
        people_act(world)
        settle(world, {"research": 8, "products": 8})


def test_cluster_out_of_reach_for_a_day_is_taken_up_where_it_stands(story: World) -> None:
    """Nobody's plan is made of what was seen last, and what went on there meanwhile is known afterwards."""
    if isinstance(story.server, RealServer):
        pytest.skip("a control plane in processes of its own does not follow this clock")
    before = {w.name: (w.state, w.placement) for w in story.cluster.workloads.all()}
    with audited(story):
        story.server.faults.configure(server_error=1.0)
        story.server.drop_connections()
        with time_machine.travel(time.time() + DAY_S):
            results = [cycle(story) for _ in range(5)]
            assert not any(result and result.written for result in results)
            now = {w.name: (w.state, w.placement) for w in story.cluster.workloads.all()}
            assert now == before
            story.server.faults.clear()
            people_act(story)
            settle(story, {"research": 8, "products": 8})
        assert not Eviction.objects.exclude(rule="reclaim").exists()


def test_node_that_falls_silent_for_a_while_costs_nothing(story: World) -> None:
    """Its pods run on: when it is back, everything is as before."""
    before = {w.name: w.state for w in story.cluster.workloads.all()}
    with audited(story):
        story.kube.patch("/api/v1/nodes/n2", silence("true"))
        until = time.monotonic() + 3
        while time.monotonic() < until:
            cycle(story)
            time.sleep(0.1)
        story.kube.patch("/api/v1/nodes/n2", silence(None))
        settle(story, {"research": 12, "products": 0})

    assert {w.name: w.state for w in story.cluster.workloads.all()} == before


def silence(value: str | None) -> Any:
    return {"metadata": {"annotations": {STOPPED: value}}}


@pytest.mark.real
def test_node_that_dies_and_comes_back_gives_up_what_it_held(world: World) -> None:
    """Its pods are deleted and stay until its kubelet is back; nothing of theirs starts twice meanwhile."""
    story = begin(world, grace_s=2)
    Cluster.objects.update(stale_gang_grace_s=2)
    with audited(story):
        story.kube.patch("/api/v1/nodes/n2", silence("true"))
        until = time.monotonic() + COLLECTED_S
        while not any(pod["metadata"].get("deletionTimestamp") for pod in pods_on(story, "n2")):
            assert time.monotonic() < until, "no gang of the dead node was ever evicted"
            cycle(story)
            time.sleep(0.1)
        story.kube.patch("/api/v1/nodes/n2", silence(None))
        settle(story, {"research": 12, "products": 0})

    assert {j["metadata"]["name"] for j in jobs_of(story.server)} == {f"r{i}" for i in range(4)}


# An act may be an Event and then a write to the Job. The Event is the same for every worker: whoever
# dies before the other comes no further than the one before.
@pytest.mark.parametrize(
    ("number", "after"), [(1, True), (2, True), (3, False), (3, True), (4, False)]
)
def test_workers_that_die_at_every_few_writes_bring_all_to_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
) -> None:
    """Each limit binds on the way: ``research`` fills its own, then both fill that of the queue above."""
    monkeypatch.setattr("scheduling.cluster.enforcement.enforcer.BATCH", 1)
    put_under_one_roof(world, nominal_gpus=6, borrowing={"research": 4, "products": 2}, together=12)
    deaths = 0
    with audited(world):
        for i in range(7):
            world.job(f"r{i}", gpus=2)
        deaths += die_until(world, monkeypatch, number, after, {"research": 10, "products": 0})
        for i in range(5):
            world.job(f"p{i}", gpus=1, pods=2, queue="products")
        deaths += die_until(world, monkeypatch, number, after, {"research": 6, "products": 6})
        settle(world, {"research": 6, "products": 6})

    assert deaths >= 2


def die_until(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int, after: bool, wanted: dict[str, int]
) -> int:
    """Workers one after another until ``wanted`` runs and one has lived through its cycle: how many died."""
    deaths, until, survived = 0, time.monotonic() + SETTLED_S, False
    while not survived or running_gpus(world) != wanted:
        assert time.monotonic() < until, f"{deaths} workers came no further"
        with monkeypatch.context() as fragile:
            die_at_write(fragile, number, after=after)
            survived = is_survived(world)
            deaths += not survived
        restart(world)
    return deaths


def is_survived(world: World) -> bool:
    try:
        cycle(world)
    except KilledError:
        return False
    return True


def test_lost_node_takes_no_work_along(story: World) -> None:
    """Its object is deleted, and with it go the pods, in a minute's time on a real cluster. There is room
    on another node all the while; whose turn it would be gets none of it past the limit."""
    Cluster.objects.update(stale_gang_grace_s=2)
    add_node(story.kube, node("n3"))
    with audited(story):
        story.kube.delete("/api/v1/nodes/n2")
        until = time.monotonic() + COLLECTED_S
        while pods_on(story, "n2"):
            assert time.monotonic() < until, "the cluster never collected the pods"
            cycle(story)
            time.sleep(0.1)
        settle(story, {"research": 12, "products": 0})

    assert {j["metadata"]["name"] for j in jobs_of(story.server)} == {f"r{i}" for i in range(4)}


def pods_on(world: World, name: str) -> list[Any]:
    pods = world.kube.get("/api/v1/namespaces/default/pods")["items"]
    return [pod for pod in pods if pod["spec"].get("nodeName") == name]
