"""What the API server takes in managed namespaces: GPU work that names a queue and waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.connection.client import ApiError, ConflictError, InvalidError
from scheduling.cluster.guardrails.kinds import KINDS
from tests.scheduling.kube import eventually
from tests.scheduling.manifests import MANIFESTS, template
from tests.scheduling.operators import DEFINITIONS, adapter_of, definitions

from .lab import PODS, Lab, Pass, job, refusal

Json = dict[str, Any]


def test_gpu_work_has_to_name_a_queue(lab: Lab, guarded: Pass) -> None:
    guarded()
    said = eventually(lambda: refusal(lab, job(lab, queue="")))

    assert f"GPU work in namespace {lab.namespace} has to name a queue." in said
    assert "Add the label weir.dev/queue: QUEUE. Queues of this namespace: research." in said


def test_gpu_work_has_to_start_suspended(lab: Lab, guarded: Pass) -> None:
    guarded()
    said = eventually(lambda: refusal(lab, job(lab, suspend=False)))
    assert "Set spec.suspend: true" in said


def test_what_the_rule_is_not_about_is_taken(lab: Lab, guarded: Pass) -> None:
    guarded()
    eventually(lambda: refusal(lab, job(lab, queue="")))
    kueue = job(lab, queue="")
    kueue["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "research"
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "x", "uid": "u"}
    owned = job(lab, queue="", suspend=False)
    owned["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    elsewhere = job(lab, queue="", suspend=False)
    elsewhere["metadata"]["namespace"] = "default"
    for i, body in enumerate([job(lab), kueue, owned, elsewhere, job(lab, queue="", gpus=0)]):
        body["metadata"]["name"] = f"w{i}"
        assert refusal(lab, body) == ""


@pytest.fixture
def kinds(lab: Lab, guarded: Pass) -> None:
    """The definitions of every kind are installed and its rule is in force."""
    for definition in definitions():
        with suppress(ConflictError):
            lab.kube.create(DEFINITIONS, definition)
    guarded()
    for kind in sorted(MANIFESTS):
        eventually(lambda kind=kind: is_guarded(lab, kind))


def is_guarded(lab: Lab, kind: str) -> bool:
    """False, too, while the API server's admission has not heard of a new kind, which it says by 503."""
    try:
        return bool(refusal(lab, of_kind(lab, kind, queue="")))
    except ApiError as error:
        if error.status != 503:
            raise
        return False


def of_kind(lab: Lab, kind: str, *, queue: str = "research", suspend: bool = True) -> Any:
    body = MANIFESTS[kind]("w")
    body["metadata"]["namespace"] = lab.namespace
    body["metadata"]["labels"] = {"weir.dev/queue": queue} if queue else {}
    adapter_of(kind).set_suspended(body, suspend)  # type: ignore[attr-defined]
    return body


REMEDIES = {
    "Deployment": "Set spec.replicas: 0 and the annotation weir.dev/replicas: COUNT",
    "LeaderWorkerSet": "Set spec.replicas: 0 and the annotation weir.dev/replicas: COUNT",
    "MPIJob": "Set spec.runPolicy.suspend: true",
    "PaddleJob": "Set spec.runPolicy.suspend: true",
    "PyTorchJob": "Set spec.runPolicy.suspend: true",
}


def test_rule_holds_for_every_kind_in_its_own_words(lab: Lab, kinds: None) -> None:
    for kind in sorted(MANIFESTS):
        assert refusal(lab, of_kind(lab, kind)) == "", kind
        assert "has to name a queue" in refusal(lab, of_kind(lab, kind, queue="")), kind
        remedy = REMEDIES.get(kind, "Set spec.suspend: true")
        assert remedy in refusal(lab, of_kind(lab, kind, suspend=False)), kind


def test_every_kind_that_weir_queues_has_its_rule() -> None:
    ruled = {f"/apis/{k.group}/{k.version}/{k.resource}" for k in KINDS if k.group}
    queued = {a.list_path for a in ADAPTERS if a.list_path != PODS}
    assert ruled == queued


def carrier(lab: Lab, version: str, kind: str, **more: Any) -> Any:
    """An object of ``kind`` whose template asks for a GPU."""
    meta = {"name": "w", "namespace": lab.namespace}
    spec = {"selector": {"matchLabels": {"app": "work"}}, "template": template(), **more}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}


def cron_job(lab: Lab, **labels: str) -> Any:
    spec = {"suspend": False, "template": template(restartPolicy="Never")}
    job_template = {"metadata": {"labels": labels}, "spec": spec}
    body = carrier(lab, "batch/v1", "CronJob")
    body["spec"] = {"schedule": "0 3 * * *", "jobTemplate": job_template}
    return body


@pytest.mark.real
@pytest.mark.parametrize(
    ("plural", "kind", "instead"),
    [
        ("statefulsets", "StatefulSet", "Use a Deployment or a LeaderWorkerSet."),
        ("daemonsets", "DaemonSet", "Use a Job of its own for each node."),
        ("replicasets", "ReplicaSet", "Use a Deployment."),
    ],
)
def test_kind_that_cannot_wait_carries_no_gpus(
    lab: Lab, guarded: Pass, plural: str, kind: str, instead: str
) -> None:
    guarded()
    path = f"/apis/apps/v1/namespaces/{lab.namespace}/{plural}"
    body = carrier(lab, "apps/v1", kind, **({"serviceName": "w"} if kind == "StatefulSet" else {}))
    said = eventually(lambda: refusal(lab, body, path))
    assert f"GPU work cannot wait in a {kind}. {instead}" in said

    body["spec"]["template"] = template(0)
    assert refusal(lab, body, path) == ""


@pytest.mark.real
def test_cron_job_makes_jobs_that_wait_in_a_queue(lab: Lab, guarded: Pass) -> None:
    guarded()
    path = f"/apis/batch/v1/namespaces/{lab.namespace}/cronjobs"
    said = eventually(lambda: refusal(lab, cron_job(lab), path))
    assert "Add the label weir.dev/queue: QUEUE in spec.jobTemplate.metadata." in said

    named = cron_job(lab, **{"weir.dev/queue": "research"})
    assert "Set spec.jobTemplate.spec.suspend: true" in refusal(lab, named, path)
    named["spec"]["jobTemplate"]["spec"]["suspend"] = True
    assert refusal(lab, named, path) == ""


def test_who_claims_devices_has_to_name_a_queue(lab: Lab, guarded: Pass) -> None:
    guarded()
    body = job(lab, queue="", gpus=0)
    pod = body["spec"]["template"]["spec"]
    pod["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "pair"}]
    said = eventually(lambda: refusal(lab, body))
    assert "has to name a queue" in said


def test_plain_gpu_pod_waits_at_our_gate(lab: Lab, guarded: Pass) -> None:
    guarded()
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": "work", "resources": limits}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "w", "namespace": lab.namespace, "labels": {"weir.dev/queue": "lab"}},
        "spec": {"containers": [container]},
    }
    said = eventually(lambda: refusal(lab, body))
    assert "Add the scheduling gate weir.dev/queue to spec.schedulingGates" in said

    body["spec"]["schedulingGates"] = [{"name": "weir.dev/queue"}]
    assert refusal(lab, body) == ""


def test_who_asks_for_no_gpu_by_name_is_taken(lab: Lab, guarded: Pass) -> None:
    guarded()
    eventually(lambda: refusal(lab, job(lab, queue="")))
    none = job(lab, queue="", suspend=False)
    none["spec"]["template"] = template(restartPolicy="Never")
    none["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "limits": {"nvidia.com/gpu": "0"}
    }
    assert refusal(lab, none) == ""


@pytest.fixture
def before(lab: Lab, guarded: Pass) -> Iterator[Callable[[Any], Callable[[Json], str]]]:
    """Stores an object from before the rule was in force; gives what refuses a patch of it (or nothing)."""
    made: list[str] = []

    def store(body: Any) -> Callable[[Json], str]:
        adapter = adapter_of(body["kind"])
        namespace, name = body["metadata"]["namespace"], "old"
        body["metadata"]["name"] = name
        with suppress(ConflictError):
            lab.kube.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        lab.kube.create(adapter.path(namespace, ""), body)
        guarded()
        # Each kind has its own policy, and the API server takes them up one by one.
        kind = body["kind"]
        stray = job(lab, queue="") if kind == "Job" else of_kind(lab, kind, queue="")
        eventually(lambda: refusal(lab, stray))
        made.append(adapter.path(namespace, name))
        return lambda patch, sub="": edit(f"{made[-1]}{sub}", patch)

    def edit(path: str, patch: Json) -> str:
        try:
            lab.kube.patch(path, patch)
        except InvalidError as refused:
            return refused.message
        return ""

    yield store
    for path in made:
        lab.kube.delete(path)


def labelled(queue: str | None) -> Json:
    return {"metadata": {"labels": {"weir.dev/queue": queue}}}


@pytest.mark.bare
def test_waiting_work_changes_its_queue_and_does_not_leave_it(lab: Lab, before: Any) -> None:
    edit = before(job(lab))
    assert "has to name a queue" in edit(labelled(None))
    assert edit(labelled("products")) == ""
    assert edit({"spec": {"suspend": False}}) == ""
    assert "The queue of GPU work that runs cannot be changed." in edit(labelled("research"))
    assert edit(labelled("products") | {"spec": {"parallelism": 1}}) == ""
    assert edit({"spec": {"suspend": True}, **labelled("research")}) == ""


@pytest.mark.bare
def test_queue_of_work_is_not_changed_with_its_status_either(lab: Lab, before: Any) -> None:
    edit = before(job(lab))
    assert "has to name a queue" in edit(labelled(None), "/status")
    assert edit({"spec": {"suspend": False}}) == ""
    assert "The queue of GPU work that runs" in edit(labelled("products"), "/status")
    assert edit({"metadata": {"labels": {"mine": "1"}}}, "/status") == ""


@pytest.mark.bare
def test_other_work_is_not_made_gpu_work_past_the_queue(lab: Lab, before: Any) -> None:
    body = of_kind(lab, "Deployment", queue="", suspend=False)
    body["spec"] |= {"replicas": 2, "template": template(0)}
    edit = before(body)
    assert edit({"spec": {"replicas": 3}}) == ""
    assert "has to name a queue" in edit({"spec": {"template": template(1)}})
    named = labelled("research") | {"spec": {"template": template(1)}}
    assert "Set spec.replicas: 0" in edit(named)
    assert edit(named | {"spec": {**named["spec"], "replicas": 0}}) == ""


@pytest.mark.bare
def test_gpu_work_from_before_the_rule_may_be_edited(lab: Lab, before: Any) -> None:
    edit = before(of_kind(lab, "Deployment", queue="", suspend=False))
    assert edit({"spec": {"replicas": 3}}) == ""
    assert edit({"spec": {"template": template(2)}}) == ""
    assert edit(labelled("research")) == ""
