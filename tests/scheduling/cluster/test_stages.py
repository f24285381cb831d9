"""Pods of a stage whose turn has not come are not missing; those of one whose turn has come are."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from scheduling.cluster.adapters import ADAPTERS, ClassSpec, Sighting
from scheduling.cluster.picture.around import Circumstances
from scheduling.cluster.picture.compose import compose
from scheduling.cluster.picture.memo import Memo
from tests.scheduling import manifests
from tests.scheduling.operators import adapter_of

Json = dict[str, Any]
CLASSES = (ClassSpec("h100", "nvidia.com/gpu", {}),)
NO_JOBS = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}


def staged(*jobs: Json, order: str = "", **counts: dict[str, int]) -> Json:
    made = manifests.job_set("w")
    (template,) = (j for j in made["spec"]["replicatedJobs"] if j["name"] == "workers")
    made["spec"]["replicatedJobs"] = [{**template, **job} for job in jobs]
    if order:
        made["spec"]["startupPolicy"] = {"startupPolicyOrder": order}
    said = [{"name": name, **NO_JOBS, **count} for name, count in counts.items()]
    made["status"] = {"replicatedJobsStatus": said}
    made["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-05T09:00:00Z"}
    return made


def after(name: str, status: str) -> Json:
    return {"dependsOn": [{"name": name, "status": status}]}


def undue(obj: Json) -> tuple[int, bool]:
    seen = adapter_of("JobSet").observe(obj, (), CLASSES)
    return seen.undue, seen.staged


FIRST, PAIR = {"name": "first"}, {"name": "first", "replicas": 2}


@pytest.mark.parametrize(
    ("status", "count", "members"),
    [
        ("Complete", {}, 2),
        ("Complete", {"active": 1, "ready": 1}, 2),
        ("Complete", {"failed": 1}, 2),
        ("Complete", {"succeeded": 1}, 0),
        ("Ready", {"active": 1}, 2),
        ("Ready", {"active": 1, "ready": 1}, 0),
        ("Ready", {"succeeded": 1}, 0),
        ("Ready", {"failed": 1}, 0),
    ],
)
def test_job_that_depends_on_another_is_due_once_that_is_there(
    status: str, count: dict[str, int], members: int
) -> None:
    obj = staged(FIRST, {"name": "second", **after("first", status)}, first=count)

    assert undue(obj) == (members, True)


def test_every_replica_of_the_other_has_to_be_there() -> None:
    second = {"name": "second", **after("first", "Complete")}

    assert undue(staged(PAIR, second, first={"succeeded": 1})) == (2, True)
    assert undue(staged(PAIR, second, first={"succeeded": 2})) == (0, True)


def test_job_is_not_due_before_the_controller_has_said_anything() -> None:
    assert undue(staged(FIRST, {"name": "second", **after("first", "Ready")})) == (2, True)


def test_job_waits_for_all_that_it_depends_on() -> None:
    both = [*after("first", "Complete")["dependsOn"], *after("second", "Ready")["dependsOn"]]
    jobs = (FIRST, {"name": "second"}, {"name": "third", "dependsOn": both})

    assert undue(staged(*jobs, first={"succeeded": 1}, second={"active": 1})) == (2, True)
    assert undue(staged(*jobs, first={"succeeded": 1}, second={"ready": 1})) == (0, True)


def test_job_that_has_started_stays_due_when_the_other_falters() -> None:
    """Ready is what a dependency was once, not what it has to stay."""
    jobs = (FIRST, {"name": "second", **after("first", "Ready")})

    assert undue(staged(*jobs, first={"active": 1}, second={"active": 1})) == (0, True)


def test_jobs_that_start_in_order_are_due_one_after_the_other() -> None:
    jobs = (FIRST, {"name": "second"}, {"name": "third"})

    assert undue(staged(*jobs, order="InOrder")) == (4, True)
    assert undue(staged(*jobs, order="InOrder", first={"ready": 1})) == (2, True)
    started = {"first": {"ready": 1}, "second": {"succeeded": 1}}
    assert undue(staged(*jobs, order="InOrder", **started)) == (0, True)


def test_jobs_without_an_order_are_due_at_once() -> None:
    assert undue(staged(FIRST, {"name": "second"}, order="AnyOrder")) == (0, False)


def look(memo: Memo, train_job: Json, job_set: Json) -> Sighting:
    held: dict[str, list[Json]] = {a.kind: [] for a in ADAPTERS if a.resource == a.kind}
    held |= {"TrainJob": [train_job], "JobSet": [job_set]}
    return compose([], [], held, Circumstances(CLASSES), memo).workloads[0]


def test_trainer_is_due_once_the_job_set_of_its_train_job_says_so() -> None:
    memo, train_job = Memo(), manifests.train_job("w")
    train_job["metadata"] |= {"uid": "t", "creationTimestamp": "2026-01-05T09:00:00Z"}
    jobs = (
        {"name": "model-initializer"},
        {"name": "node", **after("model-initializer", "Complete")},
    )
    owner = {"kind": "TrainJob", "name": "w", "uid": "t", "controller": True}

    def job_set(count: dict[str, int]) -> Json:
        made = staged(*jobs, **{"model-initializer": count})
        made["metadata"] |= {"ownerReferences": [owner], "labels": {}}
        return made

    assert look(memo, train_job, job_set({"active": 1})).undue == 2
    assert look(memo, train_job, job_set({"succeeded": 1})).undue == 0


@pytest.mark.parametrize(
    ("up", "undue", "is_up", "is_short"),
    [
        (2, 2, True, False),
        (1, 2, False, True),
        (0, 4, False, False),
        (4, 0, True, False),
        (2, 0, False, True),
    ],
)
def test_gang_is_up_when_all_that_are_due_are(
    up: int, undue: int, is_up: bool, is_short: bool
) -> None:
    jobs = (FIRST, {"name": "second", **after("first", "Complete")})
    seen = adapter_of("JobSet").observe(staged(*jobs), (), CLASSES)
    gang = dataclasses.replace(seen, members_up=up, undue=undue)

    assert (gang.members_wanted, gang.is_up, gang.is_short) == (4, is_up, is_short)
