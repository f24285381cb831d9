"""Work acts as no account of its namespace that was not made for work."""

from __future__ import annotations

from typing import Any

import pytest

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
