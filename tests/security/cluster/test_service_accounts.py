"""Work acts as no account of its namespace that was not made for work."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduling.kube import eventually
from tests.scheduling.services.guardrails.lab import job

from .people import Member, cpu_service
from .test_starts import service

Json = dict[str, Any]
REFUSAL = "Work here runs as the service account 'default'"
STRONG = "argocd-controller"


def running_as(ann: Member, kind: str, account: str, field: str = "serviceAccountName") -> Json:
    if kind == "Deployment":
        body = service(ann.lab)
    elif kind == "CPU work":
        body = job(ann.lab, queue="", gpus=0, suspend=False)
    else:
        body = job(ann.lab)
    spec = body["spec"]["template"]["spec"]
    spec[field] = account
    if kind == "Pod":
        spec["schedulingGates"] = [{"name": "weir.dev/queue"}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": body["metadata"], "spec": spec}
    return body


@pytest.mark.parametrize("field", ["serviceAccountName", "serviceAccount"])
@pytest.mark.parametrize("kind", ["Job", "Pod", "Deployment", "CPU work"])
def test_work_that_acts_as_a_strong_account_is_refused(ann: Member, kind: str, field: str) -> None:
    assert REFUSAL in ann.tries(running_as(ann, kind, STRONG, field))


@pytest.mark.parametrize("kind", ["Job", "CPU work"])
def test_work_that_acts_as_the_default_account_is_taken(ann: Member, kind: str) -> None:
    assert ann.tries(running_as(ann, kind, "default")) == ""


def test_account_that_the_namespace_names_is_taken_and_no_other(ann: Member) -> None:
    notes = {"metadata": {"annotations": {"weir.dev/service-accounts": "trainer,loader"}}}
    ann.lab.kube.patch(ann.lab.home, notes)

    assert ann.tries(running_as(ann, "Job", "loader")) == ""
    assert REFUSAL in ann.tries(running_as(ann, "Job", "load"))


@pytest.mark.real
def test_member_does_not_name_accounts_for_the_namespace(ann: Member) -> None:
    notes = {"metadata": {"annotations": {"weir.dev/service-accounts": STRONG}}}
    assert "cannot patch" in ann.edits(ann.lab.home, notes)


def test_account_of_a_deployment_is_not_changed_to_a_strong_one(ann: Member) -> None:
    body = cpu_service(ann.lab, ann.lab.priority)
    assert ann.creates(body) == ""
    strong = {"spec": {"template": {"spec": {"serviceAccountName": STRONG}}}}
    assert REFUSAL in ann.edits(f"{ann.path(body)}/w", strong)


SECRET = "argocd-controller-token"
UNREAD = "Work here reads the Secrets"
WAYS: dict[str, Json] = {
    "a volume": {"volumes": [{"name": "v", "secret": {"secretName": SECRET}}]},
    "a projected volume": {
        "volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": SECRET}}]}}]
    },
    "a variable": {
        "env": [{"name": "T", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": "token"}}}]
    },
    "all variables": {"envFrom": [{"secretRef": {"name": SECRET}}]},
}


def reading(body: Json, way: str) -> Json:
    """``body``, whose pods read the Secret in that way."""
    spec = body["spec"] if body["kind"] == "Pod" else body["spec"]["template"]["spec"]
    told = WAYS[way]
    if "volumes" in told:
        spec |= told
    else:
        spec["containers"][0] |= told
    return body


def offer(ann: Member) -> None:
    """The namespace stood before a queue got it."""
    ann.lab.kube.patch(ann.lab.home, {"metadata": {"labels": {"weir.dev/offered": "true"}}})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["Job", "Pod", "Deployment", "CPU work"])
def test_token_of_a_strong_account_in_a_taken_namespace_is_read_by_no_work(
    ann: Member, kind: str, way: str
) -> None:
    offer(ann)
    body = reading(running_as(ann, kind, "default"), way)
    eventually(lambda: UNREAD in ann.tries(body))


def test_secret_that_a_taken_namespace_names_is_read(ann: Member) -> None:
    offer(ann)
    notes = {"metadata": {"annotations": {"weir.dev/secrets": f"wandb,{SECRET}"}}}
    ann.lab.kube.patch(ann.lab.home, notes)
    for way in WAYS:
        body = reading(running_as(ann, "Job", "default"), way)
        eventually(lambda body=body: ann.tries(body) == "")


def test_secrets_of_a_namespace_that_weir_made_are_those_of_its_teams(ann: Member) -> None:
    assert ann.tries(reading(running_as(ann, "Job", "default"), "a volume")) == ""


def test_template_of_running_work_gets_no_secret_of_others(ann: Member) -> None:
    body = cpu_service(ann.lab, ann.lab.priority)
    assert ann.creates(body) == ""
    offer(ann)
    more = {"spec": {"template": {"spec": WAYS["a volume"]}}}
    eventually(lambda: UNREAD in ann.tries_edit(f"{ann.path(body)}/w", more))
    assert ann.tries_edit(f"{ann.path(body)}/w", {"metadata": {"labels": {"a": "b"}}}) == ""
