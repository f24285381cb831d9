"""GPU work that runs grows by Weir alone, whatever door one asks at; and what was told to leave leaves."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.connection.client import NotFoundError
from scheduling.cluster.guardrails.admission import MOST_GRACE_S
from tests.scheduling.kube import eventually
from tests.scheduling.manifests import template
from tests.scheduling.services.guardrails.lab import Lab, job

from .people import Member, path_of
from .test_starts import service

Json = dict[str, Any]
REFUSAL = "Only Weir makes GPU work larger"
LEAVES = "GPU pods leave within an hour"
DAY_S = 86400


def started(ann: Member, body: Json, spec: Json) -> str:
    """Made by ann, let go by Weir; the address."""
    assert ann.creates(body) == ""
    path = f"{ann.path(body)}/w"
    ann.lab.kube.patch(path, {"spec": spec})
    return path


def test_member_does_not_make_a_running_job_larger(ann: Member) -> None:
    path = started(ann, job(ann.lab), {"suspend": False, "parallelism": 1})

    assert REFUSAL in ann.edits(path, {"spec": {"parallelism": 8}})
    assert ann.lab.kube.get(path)["spec"]["parallelism"] == 1


def test_member_makes_a_running_job_smaller_and_a_waiting_one_larger(ann: Member) -> None:
    body = job(ann.lab)
    body["spec"] |= {"parallelism": 2, "completions": 8}
    assert ann.creates(body) == ""
    path = f"{ann.path(body)}/w"
    assert ann.edits(path, {"spec": {"parallelism": 4}}) == ""
    ann.lab.kube.patch(path, {"spec": {"suspend": False}})
    assert ann.edits(path, {"spec": {"parallelism": 3}}) == ""
    assert REFUSAL in ann.edits(path, {"spec": {"parallelism": 4}})


def test_weir_makes_running_work_larger(ann: Member) -> None:
    path = started(ann, job(ann.lab), {"suspend": False, "parallelism": 1})
    grown = ann.lab.kube.patch(path, {"spec": {"parallelism": 2}})
    assert grown["spec"]["parallelism"] == 2


def test_member_does_not_make_a_running_deployment_larger(ann: Member) -> None:
    path = started(ann, service(ann.lab), {"replicas": 1})

    assert REFUSAL in ann.edits(path, {"spec": {"replicas": 3}})
    assert ann.edits(path, {"spec": {"replicas": 0}}) == ""


def test_member_does_not_give_each_pod_of_a_running_deployment_more(ann: Member) -> None:
    path = started(ann, service(ann.lab), {"replicas": 1})
    fat = template(4)["spec"]["containers"]
    assert REFUSAL in ann.edits(path, {"spec": {"template": {"spec": {"containers": fat}}}})


IMAGE: Json = {"spec": {"template": {"metadata": {"annotations": {"edition": "2"}}}}}
"""What every edit of a template does: other pods beside those that there are."""


def test_member_does_not_have_a_rollout_make_more_pods_than_it_has_gpus(ann: Member) -> None:
    path = started(ann, service(ann.lab), {"replicas": 1})
    assert "maxSurge: 0" in ann.edits(path, IMAGE)

    in_place = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    anew = {"type": "Recreate", "rollingUpdate": None}
    for strategy in (in_place, anew):
        renewed: Json = {"spec": {**IMAGE["spec"], "strategy": strategy}}
        assert ann.tries_edit(path, renewed) == ""


def test_template_of_a_deployment_that_waits_is_edited_at_will(ann: Member) -> None:
    assert ann.creates(service(ann.lab)) == ""
    assert ann.edits(f"{ann.path(service(ann.lab))}/w", IMAGE) == ""


def test_growth_of_what_asks_for_no_gpus_is_nobodys_business(ann: Member) -> None:
    body = job(ann.lab, queue="", gpus=0, suspend=False)
    assert ann.creates(body) == ""
    assert ann.edits(f"{ann.path(body)}/w", {"spec": {"parallelism": 5}}) == ""


@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_gpu_work_that_would_stay_for_a_day_after_its_turn_is_refused(
    ann: Member, kind: str
) -> None:
    body = job(ann.lab)
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = DAY_S
    if kind == "Pod":
        spec = body["spec"]["template"]["spec"]
        spec["schedulingGates"] = [{"name": "weir.dev/queue"}]
        meta = {**body["metadata"], "name": "p"}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    assert LEAVES in ann.tries(body)


def test_grace_of_an_hour_is_taken(ann: Member) -> None:
    body = job(ann.lab)
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = MOST_GRACE_S
    assert ann.tries(body) == ""


def test_work_without_gpus_may_take_its_time(ann: Member) -> None:
    body = job(ann.lab, queue="", gpus=0, suspend=False)
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = DAY_S
    assert ann.tries(body) == ""


def gpu_pod(lab: Lab) -> Json:
    body = job(lab)
    spec = body["spec"]["template"]["spec"] | {"schedulingGates": [{"name": "weir.dev/queue"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": body["metadata"], "spec": spec}


@pytest.mark.real
def test_deletion_does_not_ask_for_a_day_either(ann: Member) -> None:
    body = gpu_pod(ann.lab)
    assert ann.creates(body) == ""
    # Of what stands on no node the server asks for no grace.
    ann.lab.kube.patch(f"{ann.path(body)}/w", {"spec": {"schedulingGates": None}})
    eventually(lambda: ann.lab.kube.get(f"{ann.path(body)}/w")["spec"].get("nodeName"))
    asked = {"gracePeriodSeconds": DAY_S}
    eventually(lambda: LEAVES in ann.deletes(f"{ann.path(body)}/w", dryRun=["All"], **asked))


ANEW = "A controller makes another of this GPU pod while it ends"


def pod_of(ann: Member, body: Json) -> str:
    """The address of a pod that the Job of ann's has on a node."""
    started(ann, body, {"suspend": False})
    pods = path_of("Pod", ann.lab.namespace)

    def placed() -> list[str]:
        found = ann.lab.kube.get(pods, labelSelector="job-name=w")["items"]
        return [pod["metadata"]["name"] for pod in found if pod["spec"].get("nodeName")]

    return f"{pods}/{eventually(placed)[0]}"


def test_pods_that_are_deleted_in_a_loop_do_not_pile_up_while_they_end(ann: Member) -> None:
    body = job(ann.lab)
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 60
    path = pod_of(ann, body)

    for options in ({}, {"gracePeriodSeconds": 30}):
        tried = lambda o=options: ann.deletes(path, dryRun=["All"], **o)  # noqa: E731
        eventually(lambda t=tried: ANEW in t(), seen=tried)
    assert ann.deletes(path, dryRun=["All"], gracePeriodSeconds=1) == ""
    assert not ann.lab.kube.get(path)["metadata"].get("deletionTimestamp")


def test_pod_without_gpus_is_deleted_at_will(ann: Member) -> None:
    path = pod_of(ann, job(ann.lab, queue="", gpus=0))
    assert ann.deletes(path, dryRun=["All"]) == ""


def test_work_whose_pods_nobody_deletes_slowly_is_deleted_with_them(ann: Member) -> None:
    path = pod_of(ann, job(ann.lab))
    assert ann.deletes(f"{ann.path(job(ann.lab))}/w", propagationPolicy="Background") == ""
    kube = ann.lab.kube
    gone = lambda: kube.get(path)["metadata"].get("deletionTimestamp")  # noqa: E731
    try:
        eventually(gone)
    except NotFoundError:
        return
