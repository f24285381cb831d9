"""Work that was deleted and does not go: what sits on a node is paid for by who put it there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from scheduling.cluster.connection.client import NotFoundError
from scheduling.models import Queue, Share, State
from scheduling.services.snapshot import build as snapshots
from tests.scheduling.kube import JOBS, World, eventually

HOLDER = "example.org/mine"
AGES_S = 365 * 86400
PODS = "/api/v1/namespaces/default/pods"
Json = dict[str, Any]
Attack = Callable[[World, str], None]


def start(world: World, name: str, **more: Any) -> None:
    """A Job of 8 GPUs that runs."""
    world.job(name, gpus=8, queue="products", **more)
    world.cycles_until(lambda: world.row(name).state == State.RUNNING)


def delete(world: World, name: str, policy: str = "Background") -> None:
    world.kube.delete(f"{JOBS}/{name}", {"propagationPolicy": policy})


def pods(world: World) -> list[Json]:
    found: list[Json] = world.kube.get(PODS)["items"]
    return found


def behind_a_finalizer(world: World, name: str) -> None:
    start(world, name)
    world.edit(name, {"metadata": {"finalizers": [HOLDER]}})
    delete(world, name)


def for_ages(world: World, name: str) -> None:
    start(world, name, grace_s=AGES_S)
    delete(world, name)
    eventually(lambda: all(p["metadata"].get("deletionTimestamp") for p in pods(world)))


def in_the_foreground(world: World, name: str) -> None:
    start(world, name, grace_s=AGES_S)
    delete(world, name, "Foreground")


def left_to_itself(world: World, name: str) -> None:
    start(world, name)
    delete(world, name, "Orphan")
    eventually(lambda: not any(p["metadata"].get("ownerReferences") for p in pods(world)))


ATTACKS = {
    "Job behind a finalizer": behind_a_finalizer,
    "pods with a year of grace": for_ages,
    "pods that their Job left to themselves": left_to_itself,
    "foreground deletion, pods with a year of grace": in_the_foreground,
}


@pytest.fixture
def attacked(world: World, request: pytest.FixtureRequest) -> Any:
    """``products`` holds 8 of 16 GPUs by work that it deleted."""
    ATTACKS[request.param](world, "gone")
    yield world
    end(world)


def end(world: World) -> None:
    """Let go of everything, which may be going already."""
    for pod in pods(world):
        with suppress(NotFoundError):
            world.kube.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    for job in world.kube.get(JOBS)["items"]:
        with suppress(NotFoundError):
            world.edit(job["metadata"]["name"], {"metadata": {"finalizers": None}})


every_attack = pytest.mark.parametrize("attacked", ATTACKS, indirect=True)


def held(queue: str) -> int:
    return Share.objects.get(queue__name=queue).allocated


@every_attack
def test_what_was_deleted_and_stays_is_held_by_its_queue(attacked: World) -> None:
    for _ in range(3):
        attacked.cycle()
    assert (held("products"), held("research")) == (8000, 0)
    assert sum(1 for pod in pods(attacked) if pod["spec"].get("nodeName")) == 1


@every_attack
def test_others_go_before_the_queue_that_holds_by_what_it_deleted(attacked: World) -> None:
    attacked.cycle()
    attacked.job("more", gpus=8, queue="products")
    attacked.job("other", gpus=8)
    attacked.cycles_until(lambda: attacked.row("other").state == State.RUNNING)
    assert attacked.row("more").state == State.PENDING


@every_attack
def test_no_limit_is_passed_by_deleting(attacked: World) -> None:
    Queue.objects.get(name="products").quotas.update(borrowing_limit_gpus=0)
    attacked.cycle()
    attacked.job("more", gpus=1, queue="products")
    attacked.cycle()
    attacked.cycle()
    assert attacked.read("more")["spec"]["suspend"]


@every_attack
def test_page_says_that_it_is_leaving_and_what_it_holds(attacked: World) -> None:
    attacked.cycle()
    row = attacked.row("gone")
    assert row.state != State.FINISHED
    assert row.sentence == (
        "It was deleted, and its pods still hold 8 GPUs. They count for products until they are gone."
    )


@every_attack
def test_gpus_come_free_with_the_last_pod(attacked: World) -> None:
    attacked.cycle()
    end(attacked)
    attacked.cycles_until(lambda: attacked.row("gone").state == State.FINISHED)
    attacked.cycle()
    assert held("products") == 0


def test_evicted_gang_that_takes_a_year_to_leave_is_held_by_its_queue(world: World) -> None:
    start(world, "stuck", grace_s=AGES_S)
    world.edit("stuck", {"spec": {"suspend": True}})
    eventually(lambda: all(p["metadata"].get("deletionTimestamp") for p in pods(world)))
    for _ in range(3):
        world.cycle()
    assert held("products") == 8000
    end(world)


def test_pod_that_ended_behind_a_finalizer_holds_nothing(world: World) -> None:
    start(world, "done")
    [pod] = pods(world)
    kept = [*pod["metadata"].get("finalizers", ()), HOLDER]
    path = f"{PODS}/{pod['metadata']['name']}"
    world.kube.patch(path, {"metadata": {"finalizers": kept}})
    delete(world, "done")
    world.cycles_until(lambda: world.row("done").state == State.FINISHED)
    world.cycle()
    assert held("products") == 0
    world.kube.patch(path, {"metadata": {"finalizers": None}})


def test_deletion_in_the_usual_grace_is_on_its_way(world: World) -> None:
    """Nobody is displaced for room that comes free within the minute."""
    start(world, "brief", grace_s=30)
    delete(world, "brief")
    eventually(lambda: all(p["metadata"].get("deletionTimestamp") for p in pods(world)))
    [left] = snapshots.live(world.cluster).workloads
    assert (left.queue, left.leaving) == ("products", True)
    end(world)
