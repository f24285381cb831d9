"""Odd but plausible things that happen to work and to where it lives."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from scheduling.models import Outcome, Queue, State
from tests.scheduling.kube import JOBS, World, eventually
from tests.scheduling.manifests import deployment, template

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def running(world: World, *names: str) -> bool:
    return all(world.row(name).state == State.RUNNING for name in names)


def pods_of(world: World, name: str) -> list[Json]:
    found: list[Json] = world.kube.get(PODS)["items"]
    return [p for p in found if p["metadata"]["name"].startswith(f"{name}-")]


@pytest.mark.real
def test_roll_out_that_surges_stays_admitted(world: World) -> None:
    manifest = deployment("w1", gpus=2)
    manifest["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    world.kube.create(DEPLOYMENTS, manifest)
    world.cycles_until(lambda: running(world, "w1"))
    before = {p["metadata"]["uid"] for p in pods_of(world, "w1")}
    notes = {"template": {"metadata": {"annotations": {"version": "2"}}}}
    world.kube.patch(f"{DEPLOYMENTS}/w1", {"spec": notes})

    def rolled() -> bool:
        obj = world.kube.get(f"{DEPLOYMENTS}/w1")
        assert obj["spec"]["replicas"] == 2
        now = {p["metadata"]["uid"] for p in pods_of(world, "w1")}
        return len(now) == 2 and not now & before

    world.cycles_until(rolled)
    world.cycles_until(lambda: running(world, "w1"))
    world.cycle()
    assert world.cycle().written == 0
    assert (world.row("w1").members, sum(world.row("w1").placement.values())) == (2, 2)


def test_job_deleted_in_the_foreground_holds_its_gpus_until_its_pods_are_gone(world: World) -> None:
    world.job("w1", gpus=8, pods=2)
    world.cycles_until(lambda: running(world, "w1"))
    for pod in pods_of(world, "w1"):
        held = [*pod["metadata"].get("finalizers", []), "example.com/backup"]
        world.kube.patch(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"finalizers": held}})
    world.kube.delete(f"{JOBS}/w1", {"propagationPolicy": "Foreground"})
    try:
        world.job("w2", gpus=8)
        world.cycle()
        world.cycle()
        placed = json.loads(world.notes("w2").get("weir.dev/placement", "{}"))
        left = pods_of(world, "w1")
    finally:
        for pod in pods_of(world, "w1"):
            path = f"{PODS}/{pod['metadata']['name']}"
            world.kube.patch(path, {"metadata": {"finalizers": None}})

    assert len(left) == 2
    busy = {p["spec"]["nodeName"] for p in left if p["status"]["phase"] == "Running"}
    assert placed.keys().isdisjoint(busy)
    world.cycles_until(lambda: running(world, "w2"))
    assert world.row("w1").outcome == Outcome.CANCELLED


@pytest.mark.real
def test_pods_that_outlive_their_job_keep_their_gpus(world: World) -> None:
    world.job("w1", gpus=8, pods=2)
    world.cycles_until(lambda: running(world, "w1"))
    world.kube.delete(f"{JOBS}/w1", {"propagationPolicy": "Orphan"})
    world.cycles_until(lambda: "It was deleted" in world.row("w1").sentence)
    world.job("w2", gpus=8)
    world.cycle()
    world.cycle()

    assert world.read("w2")["spec"]["suspend"]
    for pod in pods_of(world, "w1"):
        world.kube.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    world.cycles_until(lambda: running(world, "w2"))


def test_resources_of_the_whole_pod_count(world: World) -> None:
    for name in ("w1", "w2", "w3"):
        job = world.manifest(name, gpus=1)
        pod = job["spec"]["template"]["spec"]
        pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
        pod["resources"] = {"requests": {"cpu": "60", "memory": "1Gi"}}
        world.kube.create(JOBS, job)
    world.cycles_until(lambda: sum(running(world, n) for n in ("w1", "w2", "w3")) == 2)
    world.cycle()

    assert {world.row(n).cpus for n in ("w1", "w2", "w3")} == {60000}
    assert sum(world.read(n)["spec"]["suspend"] for n in ("w1", "w2", "w3")) == 1


@pytest.mark.real
def test_work_of_a_namespace_that_is_deleted_ends_and_frees_its_gpus(world: World) -> None:
    space = f"gone-{uuid.uuid4().hex[:8]}"
    world.kube.create("/api/v1/namespaces", {"metadata": {"name": space}})
    # Work of any namespace, then.
    Queue.objects.update(namespace="")
    jobs = f"/apis/batch/v1/namespaces/{space}/jobs"
    for name, gpus in (("w1", 8), ("w2", 8)):
        job = world.manifest(name, gpus=gpus, pods=2, grace_s=2)
        job["metadata"]["namespace"] = space
        world.kube.create(jobs, job)
    world.cycles_until(lambda: running(world, "w1"))
    world.kube.delete(f"/api/v1/namespaces/{space}")
    world.job("w3", gpus=8)
    failed: list[Any] = []

    def over() -> bool:
        failed.append(world.cycle().failed)
        return running(world, "w3")

    eventually(over)
    world.cycles_until(lambda: world.row("w2").state == State.FINISHED)
    assert world.row("w1").state == State.FINISHED
    assert not any(failed), failed


@pytest.mark.parametrize("runs_s", ["0.1", "3"], ids=["before-it-was-seen-to-run", "after"])
def test_group_with_a_pod_that_failed_is_stopped_as_a_whole(
    world: World, monkeypatch: pytest.MonkeyPatch, runs_s: str
) -> None:
    monkeypatch.setattr("scheduling.services.cycle.project.missing_members.SETTLE_S", 0.5)
    world.cluster.stale_gang_grace_s = 0
    world.cluster.save()
    for number, notes in enumerate(
        ({}, {"weir.dev/run-seconds": runs_s, "weir.dev/exit-code": "1"})
    ):
        meta = {
            "name": f"p{number}",
            "labels": {"weir.dev/queue": "research", "weir.dev/pod-group": "g"},
            "annotations": {"weir.dev/pod-group-total": "2", **notes},
        }
        spec = template(1, restartPolicy="Never")["spec"]
        spec["schedulingGates"] = [{"name": "weir.dev/queue"}]
        world.kube.create(PODS, {"metadata": meta, "spec": spec})
    world.cycles_until(lambda: world.row("g").state == State.FINISHED)

    assert world.kube.get(PODS)["items"] == []
    world.job("w1", gpus=8)
    world.cycles_until(lambda: running(world, "w1"))
