"""Jobs end, fail, expire and are deleted at any moment: each is settled, and its GPUs go to the next."""

from __future__ import annotations

import pytest

from scheduling.models import EndCause, Outcome, Queue, State
from tests.scheduling.kube import JOBS, World, eventually

S = State
PODS = "/api/v1/namespaces/default/pods"


def running(world: World, *names: str) -> bool:
    return all(world.row(name).state == S.RUNNING for name in names)


def delete(world: World, name: str) -> None:
    world.kube.delete(f"{JOBS}/{name}", {"propagationPolicy": "Background"})


def test_failed_job_is_settled_and_frees_its_gpus(world: World) -> None:
    job = world.manifest("bad", gpus=8, run_s=0.1)
    job["spec"]["template"]["metadata"]["annotations"]["weir.dev/exit-code"] = "1"
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: world.row("bad").state == S.FINISHED)
    row = world.row("bad")
    assert (row.outcome, row.cause, row.exit_code) == (Outcome.FAILED, EndCause.EXIT_CODE, 1)
    assert "exit code 1" in row.sentence

    world.job("next", gpus=8)
    world.cycles_until(lambda: running(world, "next"))
    assert world.cycle().written == 0


def test_job_past_its_time_limit_is_failed(world: World) -> None:
    world.job("long", gpus=1, run_time_limit_s=1)
    world.cycles_until(lambda: world.row("long").state == S.FINISHED)

    row = world.row("long")
    assert (row.outcome, row.cause) == (Outcome.FAILED, EndCause.RUN_TIME_LIMIT)
    assert "run-time limit of 1 s" in row.sentence


def test_finished_job_that_expires_stays_finished(world: World) -> None:
    job = world.manifest("brief", run_s=0.1)
    job["spec"]["ttlSecondsAfterFinished"] = 0
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: world.row("brief").state == S.FINISHED)
    eventually(lambda: not world.kube.get(JOBS)["items"])
    world.cycle()

    assert world.row("brief").outcome == Outcome.SUCCEEDED


@pytest.mark.parametrize("moment", ["waiting", "admitted", "running", "leaving"])
def test_job_deleted_at_any_moment_is_cancelled_and_its_gpus_come_free(
    world: World, moment: str
) -> None:
    Queue.objects.filter(name="research").update(stop="hold" if moment == "waiting" else "none")
    for name in ("w1", "other"):
        world.job(name, gpus=8, grace_s=1 if moment == "leaving" else 0)
    world.cycle()
    if moment in ("running", "leaving"):
        world.cycles_until(lambda: running(world, "w1"))
    if moment == "leaving":
        Queue.objects.filter(name="research").update(stop="drain")
        world.cycle()
    delete(world, "w1")
    world.cycles_until(lambda: world.row("w1").state == S.FINISHED)
    row = world.row("w1")
    assert (row.outcome, row.cause) == (Outcome.CANCELLED, EndCause.CANCELLED)

    delete(world, "other")
    Queue.objects.filter(name="research").update(stop="none")
    world.job("wide", gpus=8, pods=2)
    world.cycles_until(lambda: running(world, "wide"))


def test_job_deleted_between_plan_and_write_stops_nobody_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job("gone", gpus=1)
    world.job("stays", gpus=1)
    replace = type(world.kube).replace
    deleted: list[str] = []

    def late(self: object, path: str, body: object, **more: object) -> object:
        if path.endswith("/jobs/gone") and not deleted:
            deleted.append(path)
            world.kube.delete(path, {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
        return replace(self, path, body, **more)  # type: ignore[arg-type] # as it was called

    monkeypatch.setattr(type(world.kube), "replace", late)
    world.cycle()

    assert deleted
    world.cycles_until(lambda: running(world, "stays"))
    world.cycles_until(lambda: world.row("gone").state == S.FINISHED)


def test_member_that_is_done_is_charged_no_longer(world: World) -> None:
    job = world.manifest("pair", gpus=2, pods=2)
    job["spec"] |= {"completionMode": "Indexed", "completions": 2}
    world.kube.create(JOBS, job)
    world.cycles_until(lambda: running(world, "pair"))
    assert world.row("pair").members == 2

    end_a_pod_of(world, "pair")
    world.cycles_until(lambda: world.row("pair").members == 1)

    row = world.row("pair")
    step = row.transitions.last()
    assert step is not None
    assert (row.state, row.held_since, step.gpus) == (S.RUNNING, step.at, 2000)

    end_a_pod_of(world, "pair")
    world.cycles_until(lambda: world.row("pair").state == S.FINISHED)
    assert world.row("pair").outcome == Outcome.SUCCEEDED


def end_a_pod_of(world: World, name: str) -> None:
    pods = world.kube.get(PODS)["items"]
    pod = next(
        p
        for p in pods
        if p["metadata"]["name"].startswith(f"{name}-") and p["status"]["phase"] == "Running"
    )
    path = f"{PODS}/{pod['metadata']['name']}/status"
    world.kube.patch(path, {"status": {"phase": "Succeeded"}})
