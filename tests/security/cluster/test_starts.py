"""Starts: nobody lets work go that waits in a queue, by whatever field it waits."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import Workload
from tests.scheduling.kube import eventually
from tests.scheduling.manifests import template
from tests.scheduling.services.guardrails.lab import Lab, job

from .people import Member, let_edit

Json = dict[str, Any]
REFUSAL = "Only Weir lets GPU work of a queue go"


def test_member_does_not_unsuspend_a_job_that_waits(ann: Member) -> None:
    ann.creates(job(ann.lab))
    assert REFUSAL in ann.edits(f"{ann.path(job(ann.lab))}/w", {"spec": {"suspend": False}})


def test_member_may_take_a_hold_away_and_suspend_what_runs(ann: Member) -> None:
    path = f"{ann.path(job(ann.lab))}/w"
    ann.creates(job(ann.lab))
    assert ann.edits(path, {"metadata": {"annotations": {"weir.dev/hold": "true"}}}) == ""
    assert ann.edits(path, {"metadata": {"annotations": {"weir.dev/hold": None}}}) == ""
    ann.lab.kube.patch(path, {"spec": {"suspend": False}})
    assert ann.edits(path, {"spec": {"suspend": True}}) == ""


def test_member_does_not_scale_up_a_deployment_that_waits(ann: Member) -> None:
    body = service(ann.lab)
    assert ann.creates(body) == ""
    assert REFUSAL in ann.edits(f"{ann.path(body)}/w", {"spec": {"replicas": 1}})


@pytest.mark.real
def test_member_does_not_have_a_cron_job_make_jobs_that_do_not_wait(ann: Member) -> None:
    let_edit(ann.lab, ann.person)
    body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": job(ann.lab)["metadata"]}
    inner = job(ann.lab)
    body["spec"] = {
        "schedule": "0 0 1 1 *",
        "jobTemplate": {"metadata": {"labels": inner["metadata"]["labels"]}, "spec": inner["spec"]},
    }
    assert ann.creates(body) == ""
    change = {"spec": {"jobTemplate": {"spec": {"suspend": False}}}}
    # Rules about CronJobs are taken up by themselves.
    eventually(lambda: REFUSAL in ann.tries_edit(f"{ann.path(body)}/w", change))
    assert REFUSAL in ann.edits(f"{ann.path(body)}/w", change)


def test_work_that_is_no_gpu_work_is_let_go_by_anybody(ann: Member) -> None:
    body = job(ann.lab, gpus=0)
    ann.creates(body)
    assert ann.edits(f"{ann.path(body)}/w", {"spec": {"suspend": False}}) == ""
    assert not Workload.objects.filter(name="w", state="running").exists()


def service(lab: Lab) -> Json:
    body = job(lab) | {"apiVersion": "apps/v1", "kind": "Deployment"}
    body["metadata"]["annotations"] = {"weir.dev/replicas": "1"}
    body["spec"] = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "work"}},
        "template": template(1) | {"metadata": {"labels": {"app": "work"}}},
    }
    body["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    return body
