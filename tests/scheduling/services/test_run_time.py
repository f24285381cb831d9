"""Runs of work whose kind has no field for a limit: Weir ends them, and their owner decides."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.vocabulary import labels
from scheduling.models import State
from scheduling.services.workloads import submit as workloads
from tests.scheduling import operators
from tests.scheduling.kube import World
from tests.scheduling.manifests import MANIFESTS

JOBS = "/apis/batch/v1/namespaces/default/jobs"


def limited(world: World, name: str, limit: str, **asked: Any) -> None:
    manifest = world.manifest(name, **asked)
    manifest["metadata"]["annotations"][labels.RUN_TIME_LIMIT] = limit
    world.kube.create(JOBS, manifest)


def over(world: World, name: str) -> None:
    world.cycles_until(lambda: world.row(name).reason == "run_time_over")
    world.cycles_until(lambda: world.row(name).state == State.REQUEUED)


def test_run_past_its_limit_is_stopped_and_held_with_a_reason(world: World) -> None:
    limited(world, "long", "1s", gpus=8)
    world.cycles_until(lambda: world.row("long").state == State.RUNNING)
    over(world, "long")

    assert world.read("long")["spec"]["suspend"] is True
    assert world.notes("long")[labels.HOLD] == labels.RUN_OVER
    assert "Release it" in world.notes("long")[labels.SENTENCE]
    assert world.row("long").held
    assert "RunTimeOver" in world.events("long")
    assert world.states("long")[-2:] == ["evicted", "requeued"]


def test_gpus_of_a_run_that_is_over_go_to_others(world: World) -> None:
    limited(world, "long", "1s", gpus=8, pods=2)
    world.cycles_until(lambda: world.row("long").state == State.RUNNING)
    world.job("next", gpus=8)
    world.cycles_until(lambda: world.row("next").state == State.RUNNING)
    assert world.row("long").reason == "run_time_over"


def test_released_work_runs_for_its_limit_once_more(world: World) -> None:
    limited(world, "long", "1s")
    world.cycles_until(lambda: world.row("long").state == State.RUNNING)
    over(world, "long")
    workloads.release(world.row("long"), user="ann")
    world.cycles_until(lambda: world.states("long").count("running") == 2)
    over(world, "long")


def test_run_within_its_limit_is_let_be(world: World) -> None:
    limited(world, "short", "1h")
    world.cycles_until(lambda: world.row("short").state == State.RUNNING)
    for _ in range(3):
        world.cycle()
    assert world.row("short").state == State.RUNNING
    assert world.row("short").run_time_limit_s == 3600


@pytest.mark.parametrize("later", ["10h", None])
def test_limit_that_is_raised_during_the_run_gains_nothing(world: World, later: str | None) -> None:
    limited(world, "long", "2s")
    world.cycles_until(lambda: world.row("long").state == State.RUNNING)
    world.edit("long", {"metadata": {"annotations": {labels.RUN_TIME_LIMIT: later}}})
    over(world, "long")


def test_limit_of_the_kind_that_is_raised_during_the_run_gains_nothing(world: World) -> None:
    world.job("long", run_time_limit_s=3)
    world.cycles_until(lambda: world.row("long").state == State.RUNNING)
    world.edit("long", {"spec": {"activeDeadlineSeconds": 36_000}})
    over(world, "long")


@pytest.mark.parametrize("kind", sorted(MANIFESTS))
def test_run_of_any_kind_is_ended(world: World, kind: str) -> None:
    operators.install(world.kube)
    adapter = operators.adapter_of(kind)
    manifest = MANIFESTS[kind]("long")
    manifest["metadata"].setdefault("annotations", {})[labels.RUN_TIME_LIMIT] = "1s"
    world.kube.create(adapter.path("default", ""), manifest)
    path = adapter.path("default", "long")
    world.cycles_until(lambda: not adapter.is_suspended(world.kube.get(path)))
    world.cycles_until(lambda: adapter.is_suspended(world.kube.get(path)))
    assert world.kube.get(path)["metadata"]["annotations"][labels.HOLD] == labels.RUN_OVER
