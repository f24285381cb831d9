"""Who may read a namespace of the cluster reads of the work of others that it is another team's.

``research`` and ``products`` have 8 GPUs each on two nodes; what stands in annotations and Events of one
team's objects must not name the other's.
"""

from __future__ import annotations

import json

import pytest

from scheduling.models import Eviction, PriorityClass
from tests.scheduling.kube import World

pytestmark = pytest.mark.django_db(transaction=True)

SEALED = "secretive"


def words(world: World, name: str) -> str:
    """Annotations of Job ``name`` and the Events on it."""
    found = world.kube.get("/api/v1/namespaces/default/events")["items"]
    events = [e["message"] for e in found if e["involvedObject"]["name"] == name]
    return json.dumps([world.notes(name), events])


def is_running(world: World, name: str) -> bool:
    return not world.read(name)["spec"]["suspend"]


def test_victim_is_not_told_for_whose_work_it_left(world: World) -> None:
    PriorityClass.objects.update(min_run_time_s=0)
    world.job("lent", gpus=8)
    world.job("lent-too", gpus=8)
    world.cycles_until(lambda: is_running(world, "lent") and is_running(world, "lent-too"))
    world.job(f"{SEALED}-run", gpus=8, queue="products")
    world.cycles_until(Eviction.objects.exists)
    victim = Eviction.objects.get().workload
    world.cycles_until(lambda: "is entitled to them" in words(world, victim.name))

    kept = victim.decisions.get(action="evict")
    said = words(world, victim.name)
    assert f"default/{SEALED}-run of products" in kept.sentence
    assert "a workload of another team is entitled to them" in said
    assert SEALED not in said
    assert "products" not in said


def test_waiting_work_is_not_told_whose_run_protects_it(world: World) -> None:
    PriorityClass.objects.update(min_run_time_s=3600)
    for name in ("one", "two"):
        world.job(f"{SEALED}-{name}", gpus=8, queue="products")
    world.cycles_until(
        lambda: is_running(world, f"{SEALED}-one") and is_running(world, f"{SEALED}-two")
    )
    world.job("mine", gpus=8)
    world.cycles_until(lambda: world.row("mine").reason == "victims_protected")
    world.cycles_until(lambda: "weir.dev/sentence" in world.notes("mine"))

    said = words(world, "mine")
    assert "products holds" in world.row("mine").sentence
    assert "of a queue of another team that would leave for this" in said
    assert SEALED not in said
    assert "products" not in said


def test_work_of_the_same_queue_is_named(world: World) -> None:
    PriorityClass.objects.update(min_run_time_s=3600)
    world.job("first", gpus=8)
    world.job("second", gpus=8)
    world.cycles_until(lambda: is_running(world, "first") and is_running(world, "second"))
    world.job("next", gpus=8)
    world.job("last", gpus=8)
    world.cycles_until(lambda: world.row("last").reason)
    world.cycles_until(lambda: "weir.dev/sentence" in world.notes("last"))

    assert world.notes("last")["weir.dev/sentence"] == world.row("last").sentence
