"""Work in stages: who waits for an earlier one is not late, who does not come when it is over is."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import Cluster, State
from scheduling.services.cycle.project import missing_members
from scheduling.services.worker import cluster_turns as workers
from tests.scheduling.kube import World
from tests.scheduling.manifests import job_set, train_job
from tests.scheduling.operators import PODS, Operator, adapter_of, install

Json = dict[str, Any]
COMPLETE = {"ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
ACTIVE = {**COMPLETE, "succeeded": 0, "active": 1}


@pytest.fixture
def site(world: World) -> World:
    """The cluster with the definitions of every kind installed, and no grace for gangs."""
    install(world.kube)
    Cluster.objects.update(stale_gang_grace_s=0)
    return world


def in_stages() -> Json:
    """Two pods that prepare, and two that train once those are done."""
    made = job_set("w1")
    workers = made["spec"]["replicatedJobs"][1]
    after = [{"name": "prepare", "status": "Complete"}]
    made["spec"]["replicatedJobs"] = [
        {**workers, "name": "prepare"},
        {**workers, "name": "train", "dependsOn": after},
    ]
    return made


def submitted(site: World, kind: str, manifest: Json) -> Operator:
    site.kube.create(adapter_of(kind).path("default", ""), manifest)
    return Operator(site.kube, kind, "w1")


def prepares(site: World) -> Operator:
    """The first stage runs."""
    operator = submitted(site, "JobSet", in_stages())

    def up() -> bool:
        operator.act(only=("prepare",))
        return site.row("w1").state == State.RUNNING

    site.cycles_until(up)
    return operator


def hurry(monkeypatch: pytest.MonkeyPatch, *, start_s: float = 0.0) -> None:
    """From now on nobody has any time but what a start is given."""
    monkeypatch.setattr(missing_members, "UNSEEN_PODS_S", start_s)
    monkeypatch.setattr(missing_members, "SETTLE_S", 0.0)


def end_of_preparation(site: World, operator: Operator) -> None:
    for pod in operator.pods():
        path = f"{PODS}/{pod['metadata']['name']}/status"
        site.kube.patch(path, {"status": {"phase": "Succeeded"}})
    operator.say({"replicatedJobsStatus": [{"name": "prepare", **COMPLETE}]})


def is_suspended(operator: Operator) -> bool:
    return bool(operator.read()["spec"]["suspend"])


def test_stage_whose_turn_has_not_come_is_not_missed(
    site: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = prepares(site)
    operator.say({"replicatedJobsStatus": [{"name": "prepare", **ACTIVE}]})
    hurry(monkeypatch)
    for _ in range(3):
        site.cycle()

    assert not is_suspended(operator)
    assert site.row("w1").state == State.RUNNING
    assert sum(site.row("w1").placement.values()) == 4


def test_stage_whose_turn_has_come_gets_its_time_to_start(
    site: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = prepares(site)
    hurry(monkeypatch, start_s=300)
    end_of_preparation(site, operator)
    for _ in range(3):
        site.cycle()
    workers.close_all()
    for _ in range(3):
        site.cycle()

    assert not is_suspended(operator)


def test_stage_whose_turn_has_come_and_that_never_starts_is_requeued(
    site: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = prepares(site)
    hurry(monkeypatch)
    end_of_preparation(site, operator)
    site.cycles_until(lambda: is_suspended(operator))

    assert operator.read()["metadata"]["annotations"]["weir.dev/start-failures"] == "1"


def test_time_of_a_stage_to_start_goes_on_when_the_worker_starts_anew(
    site: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = prepares(site)
    hurry(monkeypatch, start_s=300)
    end_of_preparation(site, operator)
    site.cycle()
    since = site.row("w1").short_since
    workers.close_all()
    site.cycle()

    assert since is not None
    assert site.row("w1").short_since == since


def test_member_of_a_stage_that_ran_and_is_lost_is_missed_after_the_grace(
    site: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = prepares(site)
    hurry(monkeypatch, start_s=300)
    site.kube.delete(f"{PODS}/{operator.pods()[0]['metadata']['name']}")
    site.cycles_until(lambda: is_suspended(operator))

    assert "weir.dev/start-failures" not in operator.read()["metadata"]["annotations"]


def made_for(operator: Operator) -> Operator:
    """The JobSet that the trainer's controller makes of a TrainJob, with an initializer before its nodes."""
    job, owner = in_stages(), operator.read()
    first, second = job["spec"]["replicatedJobs"]
    after = [{"name": "model-initializer", "status": "Complete"}]
    job["spec"] |= {
        "suspend": False,
        "replicatedJobs": [
            {**first, "name": "model-initializer"},
            {**second, "name": "node", "dependsOn": after},
        ],
    }
    reference = {"apiVersion": owner["apiVersion"], "kind": "TrainJob", "name": "w1"}
    reference |= {"uid": owner["metadata"]["uid"], "controller": True}
    job["metadata"] = {"name": "w1", "namespace": "default", "ownerReferences": [reference]}
    operator._kube.create(adapter_of("JobSet").path("default", ""), job)
    return Operator(operator._kube, "JobSet", "w1")


def test_nodes_of_a_train_job_are_missed_only_once_it_is_initialized(
    site: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = submitted(site, "TrainJob", train_job("w1"))
    site.cycles_until(lambda: not is_suspended(operator))
    made = made_for(operator)
    made.say({"replicatedJobsStatus": [{"name": "model-initializer", **ACTIVE}]})
    hurry(monkeypatch)
    for _ in range(3):
        site.cycle()
    assert not is_suspended(operator)
    assert site.row("w1").state == State.ADMITTED

    made.say({"replicatedJobsStatus": [{"name": "model-initializer", **COMPLETE}]})
    site.cycles_until(lambda: is_suspended(operator))
