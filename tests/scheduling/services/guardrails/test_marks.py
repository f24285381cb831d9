"""The mark of an admission is Weir's: nobody gets GPUs by writing it."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from scheduling.cluster.connection.client import ApiError, Client, Person
from scheduling.cluster.guardrails.marks import PROTECTED
from scheduling.models import GuardrailState, Queue, State
from tests.scheduling.kube import eventually
from tests.scheduling.manifests import deployment
from tests.scheduling.operators import adapter_of

from .lab import Lab, Pass, job

Json = dict[str, Any]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
EDITOR = Person("ann", ("system:authenticated",))
"""She may edit all there is to edit in the namespace, and write statuses and bindings besides."""
EDIT = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
REPORTER = {
    "metadata": {"name": "reporter"},
    "rules": [
        {"apiGroups": [group], "resources": resources, "verbs": ["create", "patch", "update"]}
        for group, resources in (
            ("", ["pods", "pods/status", "pods/binding"]),
            ("apps", ["deployments/status"]),
            ("batch", ["jobs/status"]),
        )
    ],
}
FORGED = {"weir.dev/gpu-class": "h100", "weir.dev/placement": "{}"}


def jobs(lab: Lab) -> str:
    return f"/apis/batch/v1/namespaces/{lab.namespace}/jobs"


def annotated(**notes: str | None) -> Json:
    return {"metadata": {"annotations": notes}}


@pytest.fixture
def waiting(lab: Lab, guarded: Pass) -> str:
    """The path of a Job in a queue that lets nobody in, where the policy is in force for the editor."""
    Queue.objects.filter(name="research").update(stop="hold")
    guarded()
    ann = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}
    lab.kube.create(f"{RBAC}/namespaces/{lab.namespace}/roles", REPORTER)
    for role in (EDIT, {**EDIT, "kind": "Role", "name": "reporter"}):
        body = {"metadata": {"name": f"ann-{role['name']}"}, "roleRef": role, "subjects": [ann]}
        lab.kube.create(f"{RBAC}/namespaces/{lab.namespace}/rolebindings", body)
    lab.kube.create(jobs(lab), job(lab))
    path = f"{jobs(lab)}/w"
    eventually(lambda: edited(lab, path, annotated(harmless="1")) == "")
    return path


def refusal_of_note(lab: Lab, path: str, note: str) -> str:
    """Of a new value each time, because policies take a moment to be in force."""
    values = count()
    return str(eventually(lambda: edited(lab, path, annotated(**{note: f"{next(values)}"}))))


def edited(lab: Lab, path: str, patch: Json, person: Person = EDITOR) -> str:
    """The refusal of an edit by ``person``; empty when it was taken."""
    try:
        lab.kube.patch(path, patch, as_person=person)
    except ApiError as refused:
        return refused.message
    return ""


@pytest.mark.parametrize("note", PROTECTED)
def test_person_who_may_patch_a_job_cannot_write_a_mark(lab: Lab, waiting: str, note: str) -> None:
    assert "Only Weir writes the annotations weir.dev/gpu-class" in refusal_of_note(
        lab, waiting, note
    )


@pytest.mark.parametrize("kind", ["Job", "Pod", "Deployment"])
def test_person_who_may_write_a_status_cannot_write_a_mark_with_it(
    lab: Lab, waiting: str, kind: str
) -> None:
    path = f"{made(lab, kind)}/status"

    assert "Only Weir writes" in refusal_of_note(lab, path, "weir.dev/gpu-class")
    assert edited(lab, path, annotated(harmless="1")) == ""


def made(lab: Lab, kind: str) -> str:
    """The path of an object of that kind which is in no queue and waits for ever."""
    body = job(lab, gpus=0) if kind == "Job" else deployment("w", gpus=0)
    body["metadata"] = {"name": "other", "namespace": lab.namespace}
    if kind == "Pod":
        spec = {**body["spec"]["template"]["spec"], "schedulerName": "by-hand"}
        body = {"metadata": {"name": "other"}, "spec": spec}
    path = adapter_of("PodGroup" if kind == "Pod" else kind).path(lab.namespace, "")
    lab.kube.create(path, body)
    return f"{path}/other"


def test_person_who_may_bind_a_pod_cannot_write_a_mark_with_it(lab: Lab, waiting: str) -> None:
    refusal_of_note(lab, waiting, "weir.dev/moves-to")
    target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    binding = {"metadata": {"name": "other", **annotated(**FORGED)["metadata"]}, "target": target}
    path = f"{made(lab, 'Pod')}/binding"

    with pytest.raises(ApiError, match="Only Weir writes"):
        lab.kube.create(path, binding, as_person=EDITOR)
    binding["metadata"]["annotations"] = {"harmless": "1"}
    lab.kube.create(path, binding, as_person=EDITOR)


def test_forged_admission_is_refused_whole(lab: Lab, waiting: str) -> None:
    forged = {**annotated(**FORGED), "spec": {"suspend": False}}
    refusal_of_note(lab, waiting, "weir.dev/moves-to")

    # Of two rules that it breaks either may speak first; of the mark alone there is one.
    said = edited(lab, waiting, forged)
    assert "Only Weir writes" in said or "Only Weir lets GPU work of a queue go" in said
    assert "Only Weir writes" in edited(lab, waiting, annotated(**FORGED))
    assert lab.kube.get(waiting)["spec"]["suspend"]


def test_job_that_is_created_with_a_mark_has_none(lab: Lab, waiting: str) -> None:
    lab.cycle()
    body = job(lab)
    body["metadata"] |= {"name": "copy", "annotations": FORGED}
    lab.kube.create(jobs(lab), body, as_person=EDITOR)
    refusal = edited(lab, f"{jobs(lab)}/copy", {"spec": {"suspend": False}})
    assert "Only Weir lets GPU work of a queue go" in refusal
    lab.kube.patch(f"{jobs(lab)}/copy", {"spec": {"suspend": False}})
    lab.cycle()

    assert lab.kube.get(f"{jobs(lab)}/copy")["spec"]["suspend"]


def test_administrator_can_repair_a_mark(lab: Lab, waiting: str) -> None:
    refusal_of_note(lab, waiting, "weir.dev/moves-to")
    lab.kube.patch(waiting, annotated(**FORGED))

    notes = lab.kube.get(waiting)["metadata"]["annotations"]
    assert notes["weir.dev/gpu-class"] == "h100"


def test_weir_admits_under_the_policy_and_others_edit_what_is_theirs(
    lab: Lab, waiting: str
) -> None:
    Queue.objects.filter(name="research").update(stop="none")
    lab.cycles_until(lambda: not lab.kube.get(waiting)["spec"]["suspend"])
    mark = lab.kube.get(waiting)["metadata"]["annotations"]
    # The Job's controller, the scheduler and the kubelet write statuses of what carries the mark.
    lab.cycles_until(lambda: lab.kube.get(waiting)["status"].get("ready") == 1)

    assert edited(lab, waiting, annotated(note="mine")) == ""
    assert "Only Weir" in refusal_of_note(lab, waiting, "weir.dev/placement")
    assert edited(lab, waiting, annotated(**dict.fromkeys(PROTECTED))) == ""
    lab.cycles_until(lambda: lab.kube.get(waiting)["metadata"]["annotations"].keys() >= mark.keys())
    assert lab.row("w").state in (State.ADMITTED, State.RUNNING)


@pytest.mark.bare
def test_policy_that_would_lock_weir_out_is_not_made(
    lab: Lab, guarded: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Client.request

    def denied(self: Client, method: str, path: str, **more: Any) -> Any:
        if path.endswith("selfsubjectaccessreviews"):
            return {"status": {"allowed": False}}
        return request(self, method, path, **more)

    monkeypatch.setattr(Client, "request", denied)
    found = [f for f in guarded().findings if f.name == "weir-marks"]

    assert {f.standing for f in found} == {GuardrailState.REFUSED}
    assert "Apply docker/kubernetes/enforce.yaml anew." in found[0].detail
