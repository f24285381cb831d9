"""Whose work it is: the API server's own record says so, not what somebody typed."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.connection.client import Person
from tests.scheduling.kube import eventually
from tests.scheduling.manifests import template
from tests.scheduling.operators import adapter_of, install
from tests.scheduling.services.guardrails.lab import Lab, job
from tests.scheduling.services.guardrails.test_admission import of_kind

from .people import TEAM, Member, account, let_edit, path_of
from .test_owners import owned, owner
from .test_priority import cpu_pod

Json = dict[str, Any]
NOTE = "weir.dev/user"
REFUSED = "Whose work it is stays as it was said when it was made."


def signed(body: Json, user: str | None) -> Json:
    notes = body["metadata"].setdefault("annotations", {})
    notes.pop(NOTE, None)
    if user is not None:
        notes[NOTE] = user
    return body


def user_of(ann: Member, body: Json) -> str:
    """As it is stored."""
    path = path_of(body["kind"], ann.lab.namespace)
    found: str = ann.lab.kube.get(f"{path}/{body['metadata']['name']}")["metadata"]["annotations"][
        NOTE
    ]
    return found


@pytest.mark.parametrize("typed", [None, "bob", ""])
def test_work_belongs_to_whoever_created_it(ann: Member, typed: str | None) -> None:
    body = signed(job(ann.lab), typed)
    if typed is None:
        del body["metadata"]["annotations"]
    assert ann.creates(body) == ""
    assert user_of(ann, body) == "ann"


def test_work_that_is_applied_belongs_to_whoever_applied_it(ann: Member) -> None:
    for _ in range(2):
        assert ann.applies(signed(job(ann.lab), None)) == ""
        assert user_of(ann, job(ann.lab)) == "ann"
    assert REFUSED in ann.applies(signed(job(ann.lab), "bob"), force="true")


@pytest.mark.parametrize("user", ["bob", None])
def test_owner_of_work_is_not_changed_afterwards(ann: Member, user: str | None) -> None:
    assert ann.creates(job(ann.lab)) == ""
    patch = {"metadata": {"annotations": {NOTE: user}}}
    path, refusal = f"{ann.path(job(ann.lab))}/w", "Set the annotation weir.dev/user to ann."
    # Policies are taken up one by one; what is only tried changes nothing.
    eventually(lambda: refusal in ann.tries_edit(path, patch))
    assert f"{REFUSED} {refusal}" in ann.edits(path, patch)


def test_owner_of_a_pod_is_not_changed_with_its_status(lab: Lab, ann: Member) -> None:
    assert ann.creates(cpu_pod(lab)) == ""
    patch = {"metadata": {"annotations": {NOTE: "bob"}}}
    reporter = Member(lab, account("kube-system", "node-controller"))
    path = f"{path_of('Pod', lab.namespace)}/p/status"
    assert REFUSED in reporter.edits(path, patch)


def test_every_kind_belongs_to_whoever_created_it(lab: Lab, ann: Member) -> None:
    install(lab.kube)
    for kind in ("JobSet", "RayJob", "TrainJob", "LeaderWorkerSet", "Deployment"):
        body = signed(of_kind(lab, kind), "bob")
        assert eventually(lambda body=body: ann.tries(body) == "")
        assert ann.creates(body) == ""
        assert user_of(ann, body) == "ann", kind
        lab.kube.delete(adapter_of(kind).path(lab.namespace, "w"))


def test_who_may_act_for_weir_names_somebody_else(ann: Member) -> None:
    path = ann.path(job(ann.lab))
    ann.lab.kube.create(path, signed(job(ann.lab), "carl"))
    assert user_of(ann, job(ann.lab)) == "carl"
    ann.lab.kube.patch(f"{path}/w", {"metadata": {"annotations": {NOTE: "dora"}}})
    assert user_of(ann, job(ann.lab)) == "dora"


def test_what_a_controller_makes_keeps_the_name_of_its_template(lab: Lab, ann: Member) -> None:
    body = owned(signed(job(lab), "ann"), owner("batch/v1", "CronJob"))
    cron = account("kube-system", "cronjob-controller")
    path, dry = ann.path(body), {"dryRun": "All"}
    made = lab.kube.request("POST", path, query=dry, body=body, as_person=cron)
    assert made["metadata"]["annotations"][NOTE] == "ann"


@pytest.mark.real
@pytest.mark.parametrize("bare", [True, False])
def test_jobs_of_a_cron_job_belong_to_whoever_created_it(ann: Member, bare: bool) -> None:
    let_edit(ann.lab, ann.person)
    meta = {} if bare else {"metadata": {"annotations": {NOTE: "bob"}}}
    own = {**meta, "spec": {"template": template(0, restartPolicy="Never")}}
    body = job(ann.lab) | {"kind": "CronJob", "spec": {"schedule": "0 3 * * *", "jobTemplate": own}}
    assert ann.creates(body) == ""
    path = f"{ann.path(body)}/w"
    made = ann.lab.kube.get(path)["spec"]["jobTemplate"]["metadata"]
    assert made["annotations"] == {NOTE: "ann"}
    patch = {"spec": {"jobTemplate": {"metadata": {"annotations": {NOTE: "bob"}}}}}
    assert REFUSED in ann.edits(path, patch)


@pytest.mark.parametrize(("groups", "whose"), [(TEAM, "weir:bob"), ((*TEAM, "weir:people"), "bob")])
def test_name_with_the_portals_prefix_is_anothers_in_the_portals_group_alone(
    lab: Lab, ann: Member, groups: tuple[str, ...], whose: str
) -> None:
    """A provider of the API server may name somebody ``weir:bob``."""
    made = Member(lab, Person("weir:bob", groups))
    assert eventually(lambda: made.tries(job(lab)) == "")
    assert made.creates(signed(job(lab), None)) == ""
    assert user_of(ann, job(lab)) == whose
