"""The objects that Weir keeps on a cluster: made, compared, repaired, given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduling.cluster.client import ApiError, InvalidError, NotFoundError
from scheduling.cluster.embedded import EmbeddedServer
from scheduling.models import (
    Cluster,
    ClusterMode,
    GpuClass,
    Guardrail,
    PriorityClass,
    Queue,
    Quota,
    Standing,
)
from scheduling.services import guardrails, workers
from scheduling.services import policy as policies
from scheduling.services.guardrails import Guarded, guard
from tests.scheduling.kube import JOBS, World

QUOTA = "/api/v1/namespaces/lab/resourcequotas/weir"
BINDING = "/apis/rbac.authorization.k8s.io/v1/namespaces/lab/rolebindings/weir"
TRAIN = "/apis/scheduling.k8s.io/v1/priorityclasses/train"
Pass = Callable[[], Guarded]


@pytest.fixture
def lab(world: World) -> World:
    """``research`` works in the namespace ``lab``, at most 12 GPUs; its group is ``lab-people``."""
    Queue.objects.filter(name="research").update(namespace="lab", access_group="lab-people")
    Queue.objects.filter(name="products").update(namespace="")
    Quota.objects.filter(queue__name="research").update(borrowing_limit_gpus=4000)
    return world


@pytest.fixture
def guarded(lab: World) -> Pass:
    """One pass, as the worker makes it."""

    def run() -> Guarded:
        cluster = Cluster.objects.get(pk=lab.cluster.pk)
        return guard(cluster, workers.worker_of(cluster, on_change=lambda: None))

    return run


@pytest.fixture
def writes(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Writes that the server sees, but for the lease's."""
    heard: list[str] = []
    strike = server.faults.strike

    def listen(method: str, path: str) -> float:
        if method != "GET" and "leases" not in path:
            heard.append(f"{method} {path}")
        return strike(method, path)

    monkeypatch.setattr(server.faults, "strike", listen)
    return heard


def standing(kind: str) -> Guardrail:
    return Guardrail.objects.get(kind=kind)


def observe() -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)


def test_first_pass_makes_everything(lab: World, guarded: Pass) -> None:
    result = guarded()

    assert result.count(Standing.IN_STEP) == len(result.findings) == Guardrail.objects.count()
    assert lab.kube.get(QUOTA)["spec"]["hard"] == {"requests.nvidia.com/gpu": "12"}
    assert lab.kube.get(BINDING)["subjects"][0]["name"] == "lab-people"
    assert lab.kube.get(BINDING)["roleRef"]["name"] == "weir-member"
    train = lab.kube.get(TRAIN)
    assert (train["value"], train["preemptionPolicy"]) == (50, "Never")


def test_settled_cluster_is_not_written_to(guarded: Pass, writes: list[str]) -> None:
    guarded()
    writes.clear()
    since = {g.pk: g.since for g in Guardrail.objects.all()}
    guarded()

    assert writes == []
    assert {g.pk: g.since for g in Guardrail.objects.all()} == since


def test_observe_mode_writes_nothing_and_shows_what_is_missing(
    guarded: Pass, writes: list[str]
) -> None:
    observe()
    guarded()

    assert writes == []
    assert set(Guardrail.objects.values_list("standing", flat=True)) == {Standing.MISSING}


def test_paused_cluster_is_left_alone(guarded: Pass) -> None:
    Cluster.objects.update(mode=ClusterMode.PAUSED)
    assert guarded().skipped == "paused"


def edit(world: World, path: str, **parts: Any) -> None:
    """What ``kubectl edit`` does, under a field manager of its own."""
    world.kube.request("PATCH", path, query={"fieldManager": "kubectl-edit"}, body=parts)


def test_drift_is_repaired_and_fields_of_others_stay(lab: World, guarded: Pass) -> None:
    guarded()
    edit(lab, QUOTA, spec={"hard": {"requests.nvidia.com/gpu": "99", "pods": "50"}})
    edit(lab, "/api/v1/namespaces/lab", metadata={"labels": {"team": "lab"}})
    guarded()

    hard = lab.kube.get(QUOTA)["spec"]["hard"]
    assert hard == {"requests.nvidia.com/gpu": "12", "pods": "50"}
    assert lab.kube.get("/api/v1/namespaces/lab")["metadata"]["labels"]["team"] == "lab"


def test_drift_in_observe_mode_is_shown_by_field(lab: World, guarded: Pass) -> None:
    guarded()
    edit(lab, QUOTA, spec={"hard": {"requests.nvidia.com/gpu": "99"}})
    observe()
    guarded()

    quota = standing("ResourceQuota")
    assert quota.standing == Standing.DRIFTED
    assert quota.fields == ["spec.hard.requests.nvidia.com/gpu"]
    assert lab.kube.get(QUOTA)["spec"]["hard"] == {"requests.nvidia.com/gpu": "99"}


def test_deleted_object_is_made_again(lab: World, guarded: Pass) -> None:
    guarded()
    lab.kube.delete(QUOTA)
    guarded()
    assert lab.kube.get(QUOTA)


def test_changed_limit_reaches_the_quota(lab: World, guarded: Pass) -> None:
    guarded()
    Quota.objects.filter(queue__name="research").update(nominal_gpus=16000)
    guarded()
    assert lab.kube.get(QUOTA)["spec"]["hard"] == {"requests.nvidia.com/gpu": "20"}


def test_unlimited_queue_has_no_backstop_and_the_old_one_goes(lab: World, guarded: Pass) -> None:
    guarded()
    Quota.objects.update(borrowing_limit_gpus=None)
    guarded()

    with pytest.raises(NotFoundError):
        lab.kube.get(QUOTA)
    assert not Guardrail.objects.filter(kind="ResourceQuota").exists()


def test_namespace_no_longer_wanted_is_given_back_not_deleted(lab: World, guarded: Pass) -> None:
    guarded()
    Queue.objects.filter(name="research").update(namespace="")
    guarded()

    namespace = lab.kube.get("/api/v1/namespaces/lab")
    assert "weir.dev/managed" not in namespace["metadata"]["labels"]
    assert "deletionTimestamp" not in namespace["metadata"]
    with pytest.raises(NotFoundError):
        lab.kube.get(BINDING)
    assert guarded().count(Standing.UNWANTED) == 0


def test_unwanted_is_shown_in_observe_mode(lab: World, guarded: Pass) -> None:
    guarded()
    observe()
    PriorityClass.objects.all().delete()
    guarded()

    assert standing("PriorityClass").standing == Standing.UNWANTED
    assert lab.kube.get(TRAIN)["value"] == 50


@pytest.mark.parametrize(("value", "expected"), [(50, Standing.IN_STEP), (10, Standing.REFUSED)])
def test_priority_class_of_others_stays_theirs(
    lab: World, guarded: Pass, value: int, expected: Standing
) -> None:
    body = {"metadata": {"name": "train"}, "value": value}
    lab.kube.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    guarded()

    assert standing("PriorityClass").standing == expected
    assert "labels" not in lab.kube.get(TRAIN)["metadata"]
    PriorityClass.objects.all().delete()
    guarded()
    assert lab.kube.get(TRAIN)["value"] == value


def test_quota_named_as_ours_but_written_by_others_is_reported(lab: World, guarded: Pass) -> None:
    lab.kube.create("/api/v1/namespaces", {"metadata": {"name": "lab"}})
    theirs = {"metadata": {"name": "weir"}, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    lab.kube.request(
        "POST",
        "/api/v1/namespaces/lab/resourcequotas",
        query={"fieldManager": "somebody"},
        body=theirs,
    )
    guarded()

    quota = standing("ResourceQuota")
    assert quota.standing == Standing.REFUSED
    assert '"somebody"' in quota.detail
    assert standing("RoleBinding").standing == Standing.IN_STEP


def test_nothing_is_written_without_the_lease(
    lab: World, guarded: Pass, writes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = workers.worker_of(lab.cluster, on_change=lambda: None)
    monkeypatch.setattr(type(worker.lease), "hold", lambda self: False)

    assert guarded().skipped == "lease"
    assert writes == []


def job(world: World, *, queue: str = "research", gpus: int = 1, suspend: bool = True) -> Any:
    body = world.manifest("w", gpus=gpus or 1, queue=queue, suspend=suspend)
    body["metadata"]["namespace"] = "lab"
    if not queue:
        body["metadata"]["labels"].pop("weir.dev/queue")
    if not gpus:
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    return body


def submit(world: World, body: Any) -> str:
    """The refusal of ``body``; empty when it is taken."""
    path = JOBS.replace("default", body["metadata"]["namespace"])
    try:
        world.kube.create(path, body)
    except InvalidError as refused:
        return refused.message
    return ""


def test_gpu_work_has_to_name_a_queue(lab: World, guarded: Pass) -> None:
    guarded()
    said = submit(lab, job(lab, queue=""))

    assert "GPU work in namespace lab has to name a queue." in said
    assert "Add the label weir.dev/queue: QUEUE. Queues of this namespace: research." in said


def test_gpu_work_has_to_start_suspended(lab: World, guarded: Pass) -> None:
    guarded()
    assert "Set spec.suspend: true" in submit(lab, job(lab, suspend=False))


def test_what_the_rule_is_not_about_is_taken(lab: World, guarded: Pass) -> None:
    guarded()
    kueue = job(lab, queue="")
    kueue["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "research"
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u", "controller": True}
    owned = job(lab, queue="", suspend=False)
    owned["metadata"]["ownerReferences"] = [owner]
    elsewhere = job(lab, queue="", suspend=False)
    elsewhere["metadata"]["namespace"] = "default"
    for i, body in enumerate([job(lab), kueue, owned, elsewhere, job(lab, queue="", gpus=0)]):
        body["metadata"]["name"] = f"w{i}"
        assert submit(lab, body) == ""


def test_cluster_that_does_not_answer_is_raised(
    lab: World, guarded: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.client.BACK_OFF_S", (0.0, 0.0))
    worker = workers.worker_of(lab.cluster, on_change=lambda: None)
    worker.client._host = "http://127.0.0.1:9"
    with pytest.raises(ApiError):
        guarded()


def limits(lab: World) -> dict[str, dict[str, int]]:
    rows = policies.load(lab.cluster, at=lab.cluster.now())
    return {n.name: dict(n.hard) for n in guardrails.rails_of(rows).namespaces}


def test_backstop_is_the_least_limit_along_the_line(lab: World) -> None:
    top = Queue.objects.get(name="research")
    child = Queue.objects.create(cluster=lab.cluster, parent=top, name="child", namespace="den")
    assert limits(lab)["den"] == {"nvidia.com/gpu": 12}

    own = Quota.objects.get(queue=top)
    own.pk, own.queue, own.nominal_gpus, own.borrowing_limit_gpus = None, child, 2000, 1000
    own.save()
    assert limits(lab)["den"] == {"nvidia.com/gpu": 3}


def test_queues_that_share_a_namespace_share_its_backstop(lab: World) -> None:
    products = Queue.objects.get(name="products")
    Queue.objects.filter(pk=products.pk).update(namespace="lab")
    assert limits(lab)["lab"] == {}

    Quota.objects.filter(queue=products).update(borrowing_limit_gpus=0)
    assert limits(lab)["lab"] == {"nvidia.com/gpu": 20}


def test_queue_below_another_of_the_same_namespace_counts_once(lab: World) -> None:
    top = Queue.objects.get(name="research")
    Queue.objects.create(cluster=lab.cluster, parent=top, name="child", namespace="lab")
    assert limits(lab)["lab"] == {"nvidia.com/gpu": 12}


def test_classes_of_one_resource_are_bounded_together(lab: World) -> None:
    other = GpuClass.objects.create(cluster=lab.cluster, name="a100", node_labels={"gpu": "a100"})
    assert limits(lab)["lab"] == {}

    own = Quota.objects.get(queue__name="research")
    own.pk, own.gpu_class, own.nominal_gpus, own.borrowing_limit_gpus = None, other, 1000, 0
    own.save()
    assert limits(lab)["lab"] == {"nvidia.com/gpu": 13}


def test_group_of_a_queue_above_works_in_the_namespaces_below(lab: World) -> None:
    top = Queue.objects.get(name="research")
    Queue.objects.create(cluster=lab.cluster, parent=top, name="child", namespace="den")
    rows = policies.load(lab.cluster, at=lab.cluster.now())
    groups = {n.name: n.groups for n in guardrails.rails_of(rows).namespaces}
    assert groups == {"lab": ("lab-people",), "den": ("lab-people",)}


def test_sharing_a_namespace_with_others_gives_no_rights_there(lab: World) -> None:
    Queue.objects.filter(name="products").update(namespace="lab", access_group="sellers")
    rows = policies.load(lab.cluster, at=lab.cluster.now())
    assert guardrails.rails_of(rows).namespaces[0].groups == ()
