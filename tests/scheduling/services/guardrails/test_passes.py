"""The objects that Weir keeps on a cluster: made, compared, repaired, given back."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.connection.client import ApiError, Client, NotFoundError, configuration_of
from scheduling.cluster.vocabulary.quantities import milli
from scheduling.models import (
    Cluster,
    ClusterMode,
    Guardrail,
    GuardrailState,
    PriorityClass,
    Queue,
    Quota,
)
from scheduling.services.worker import cluster_turns as workers
from tests.scheduling.kube import World, eventually
from tests.scheduling.operators import adapter_of

from .lab import CLASSES, Lab, Pass, job, observe, standing


@pytest.mark.bare
def test_first_pass_makes_everything(lab: Lab, guarded: Pass) -> None:
    result = guarded()

    assert result.count(GuardrailState.IN_STEP) == len(result.findings) == Guardrail.objects.count()
    assert lab.hard_gpus() == {"requests.nvidia.com/gpu": "12"}
    assert lab.kube.get(lab.limit_range)["spec"]["limits"][0]["type"] == "Container"
    assert lab.kube.get(lab.binding)["subjects"][0]["name"] == "lab-people"
    assert lab.kube.get(lab.binding)["roleRef"]["name"] == "weir-member"
    train = lab.kube.get(lab.priority_class)
    assert (train["value"], train["preemptionPolicy"]) == (50, "Never")


def test_settled_cluster_is_not_written_to(guarded: Pass, writes: list[str]) -> None:
    guarded()
    writes.clear()
    since = {g.pk: g.since for g in Guardrail.objects.all()}
    guarded()

    assert writes == []
    assert {g.pk: g.since for g in Guardrail.objects.all()} == since


@pytest.mark.bare
def test_observe_mode_writes_nothing_and_shows_what_is_missing(
    lab: Lab, guarded: Pass, writes: list[str]
) -> None:
    observe()
    guarded()

    assert writes == []
    mine = Guardrail.objects.filter(name=lab.namespace) | Guardrail.objects.filter(
        name=lab.priority
    )
    assert [g.standing for g in mine] == [GuardrailState.MISSING] * 2


@pytest.mark.bare
def test_paused_cluster_is_left_alone(guarded: Pass) -> None:
    Cluster.objects.update(mode=ClusterMode.PAUSED)
    assert guarded().skipped == "paused"


def edit(world: World, path: str, **parts: Any) -> None:
    """What ``kubectl edit`` does, under a field manager of its own."""
    world.kube.request("PATCH", path, query={"fieldManager": "kubectl-edit"}, body=parts)


def test_drift_is_repaired_and_fields_of_others_stay(lab: Lab, guarded: Pass) -> None:
    guarded()
    edit(lab, lab.quota, spec={"hard": {"requests.nvidia.com/gpu": "99", "services": "50"}})
    edit(lab, lab.home, metadata={"labels": {"team": "lab"}})
    guarded()

    assert lab.hard_gpus() == {"requests.nvidia.com/gpu": "12", "services": "50"}
    assert lab.kube.get(lab.home)["metadata"]["labels"]["team"] == "lab"


def test_drift_in_observe_mode_is_shown_by_field(lab: Lab, guarded: Pass) -> None:
    guarded()
    edit(lab, lab.quota, spec={"hard": {"requests.nvidia.com/gpu": "99"}})
    observe()
    guarded()

    quota = standing("ResourceQuota")
    assert quota.standing == GuardrailState.DRIFTED
    assert quota.fields == ["spec.hard.requests.nvidia.com/gpu"]
    assert lab.hard_gpus() == {"requests.nvidia.com/gpu": "99"}


def test_deleted_object_is_made_again(lab: Lab, guarded: Pass) -> None:
    guarded()
    lab.kube.delete(lab.quota)
    guarded()
    assert lab.kube.get(lab.quota)


def test_changed_limit_reaches_the_quota(lab: Lab, guarded: Pass) -> None:
    guarded()
    Quota.objects.filter(queue__name="research").update(nominal_gpus=16000)
    guarded()
    assert lab.hard_gpus() == {"requests.nvidia.com/gpu": "20"}


def test_who_starts_jobs_by_hand_is_stopped_at_the_limit(lab: Lab, guarded: Pass) -> None:
    guarded()
    quota = eventually(lambda: lab.kube.get(lab.quota)["status"].get("used"))
    assert quota["requests.nvidia.com/gpu"] == "0"
    jobs = adapter_of("Job").path(lab.namespace, "")
    for name, gpus in (("inside", 8), ("past", 5)):
        body = job(lab, gpus=gpus)
        body["metadata"]["name"] = name
        lab.kube.create(jobs, body)
        lab.kube.patch(f"{jobs}/{name}", {"spec": {"suspend": False}})
        eventually(lambda name=name: words_on(lab, name))

    assert words_on(lab, "inside") == {"SuccessfulCreate"}
    assert "limited: requests.nvidia.com/gpu=12" in said_on(lab, "past", "FailedCreate")
    assert [p["metadata"]["labels"]["job-name"] for p in pods(lab)] == ["inside"]


def pods(lab: Lab) -> list[Any]:
    found: list[Any] = lab.kube.get(f"{lab.home}/pods")["items"]
    return found


def words_on(lab: Lab, name: str) -> set[str]:
    """What became of the pods of a Job, by its Events."""
    return {e["reason"] for e in events_on(lab, name) if e["reason"].endswith("Create")}


def said_on(lab: Lab, name: str, reason: str) -> str:
    return next(str(e["message"]) for e in events_on(lab, name) if e["reason"] == reason)


def events_on(lab: Lab, name: str) -> list[Any]:
    found = lab.kube.get(f"{lab.home}/events")["items"]
    return [e for e in found if e["involvedObject"]["name"] == name]


def test_unlimited_queue_is_bounded_by_the_cluster_alone(lab: Lab, guarded: Pass) -> None:
    guarded()
    Quota.objects.update(borrowing_limit_gpus=None)
    guarded()

    assert lab.hard_gpus() == {}
    nodes = len(lab.kube.get("/api/v1/nodes")["items"])
    assert milli(lab.hard()["requests.cpu"]) == nodes * 96_000


def test_what_is_no_longer_wanted_goes(lab: Lab, guarded: Pass) -> None:
    guarded()
    Queue.objects.update(access_group="")
    guarded()

    bound = lab.kube.get(lab.binding)["subjects"]
    assert [subject["name"] for subject in bound] == ["weir:people"]
    Queue.objects.filter(name="research").update(namespace="")
    guarded()
    with pytest.raises(NotFoundError):
        lab.kube.get(lab.binding)
    assert not Guardrail.objects.filter(kind="RoleBinding").exists()


def test_namespace_no_longer_wanted_is_given_back_not_deleted(lab: Lab, guarded: Pass) -> None:
    guarded()
    Queue.objects.filter(name="research").update(namespace="")
    guarded()

    namespace = lab.kube.get(lab.home)
    assert "weir.dev/managed" not in namespace["metadata"]["labels"]
    assert "deletionTimestamp" not in namespace["metadata"]
    with pytest.raises(NotFoundError):
        lab.kube.get(lab.binding)
    assert guarded().count(GuardrailState.UNWANTED) == 0


def test_unwanted_is_shown_in_observe_mode(lab: Lab, guarded: Pass) -> None:
    guarded()
    observe()
    PriorityClass.objects.all().delete()
    guarded()

    assert standing("PriorityClass").standing == GuardrailState.UNWANTED
    assert lab.kube.get(lab.priority_class)["value"] == 50


@pytest.mark.parametrize(
    ("value", "expected"), [(50, GuardrailState.IN_STEP), (10, GuardrailState.REFUSED)]
)
def test_priority_class_of_others_stays_theirs(
    lab: Lab, guarded: Pass, value: int, expected: GuardrailState
) -> None:
    body = {"metadata": {"name": lab.priority}, "value": value}
    lab.kube.create(CLASSES, body)
    guarded()

    assert standing("PriorityClass").standing == expected
    assert "labels" not in lab.kube.get(lab.priority_class)["metadata"]
    PriorityClass.objects.all().delete()
    guarded()
    assert lab.kube.get(lab.priority_class)["value"] == value


@pytest.mark.bare
def test_quota_named_as_ours_but_written_by_others_is_reported(lab: Lab, guarded: Pass) -> None:
    lab.kube.create("/api/v1/namespaces", {"metadata": {"name": lab.namespace}})
    theirs = {"metadata": {"name": "weir"}, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    lab.kube.request(
        "POST", f"{lab.home}/resourcequotas", query={"fieldManager": "somebody"}, body=theirs
    )
    guarded()

    quota = standing("ResourceQuota")
    assert quota.standing == GuardrailState.REFUSED
    assert '"somebody"' in quota.detail
    bound = Guardrail.objects.filter(kind="RoleBinding")
    assert {found.standing for found in bound} == {GuardrailState.IN_STEP}


@pytest.mark.bare
def test_nothing_is_written_without_the_lease(
    lab: Lab, guarded: Pass, writes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = workers.held_of(lab.cluster, on_change=lambda: None)
    monkeypatch.setattr(type(worker.link.lease), "hold", lambda self: False)

    assert guarded().skipped == "lease"
    assert writes == []


def test_cluster_that_does_not_answer_is_raised(
    lab: Lab, guarded: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.connection.client.BACK_OFF_S", (0.0, 0.0))
    worker = workers.held_of(lab.cluster, on_change=lambda: None)
    worker.link.client = Client(configuration_of(Cluster(api_url="http://127.0.0.1:9")))
    with pytest.raises(ApiError):
        guarded()
