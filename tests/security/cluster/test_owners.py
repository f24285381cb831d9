"""Owners: nobody gets GPU work past the queues by saying that another object made it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scheduling.cluster.connection.client import Person
from scheduling.models import Workload
from tests.scheduling.kube import eventually
from tests.scheduling.manifests import template
from tests.scheduling.services.guardrails.lab import Lab, job

from .people import ROLES, Member, account, let_edit, path_of

Json = dict[str, Any]
CONTROLLERS = [
    account("kube-system", "job-controller"),
    Person("system:kube-controller-manager", ("system:authenticated",)),
]
WHOSE = "Only a controller says which object its GPU work was made for."


def owner(version: str, kind: str, uid: str = "u", *, controller: bool = True) -> Json:
    return {"apiVersion": version, "kind": kind, "name": "x", "uid": uid, "controller": controller}


JOB_SET = owner("jobset.x-k8s.io/v1alpha2", "JobSet")
CONFIG_MAP = owner("v1", "ConfigMap")


def owned(body: Json, *owners: Json) -> Json:
    body["metadata"]["ownerReferences"] = list(owners)
    return body


def eager(lab: Lab) -> Json:
    """A Job that names no queue and does not wait."""
    return job(lab, queue="", suspend=False)


@pytest.mark.parametrize("reference", [CONFIG_MAP, JOB_SET], ids=lambda o: str(o["kind"]))
def test_controller_that_a_member_names_frees_no_job(ann: Member, reference: Json) -> None:
    assert "has to name a queue" in ann.tries(owned(eager(ann.lab), reference))


@pytest.mark.parametrize("person", CONTROLLERS, ids=lambda p: str(p.name))
def test_config_map_as_controller_frees_nothing_even_for_a_controller(
    lab: Lab, ann: Member, person: Person
) -> None:
    controller = Member(lab, let_edit(lab, person))
    assert "has to name a queue" in controller.tries(owned(eager(lab), CONFIG_MAP))


def test_what_a_controller_makes_for_judged_work_follows_its_turn(lab: Lab, ann: Member) -> None:
    reference = owner("batch/v1", "CronJob")
    cron = account("kube-system", "cronjob-controller")
    assert Member(lab, cron).tries(owned(eager(lab), reference)) == ""


def test_kind_of_that_name_in_another_group_frees_nothing(lab: Lab, ann: Member) -> None:
    reference = owner("mine.example/v1", "CronJob")
    cron = account("kube-system", "cronjob-controller")
    assert "has to name a queue" in Member(lab, cron).tries(owned(eager(lab), reference))


BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest.fixture
def grant(lab: Lab) -> Iterator[Callable[[Person], None]]:
    """Gives an account, for the test, the right by which operators are told from people."""
    role = f"owned-{uuid.uuid4().hex[:8]}"
    rule = {"apiGroups": ["weir.dev"], "resources": ["owned"], "verbs": ["create"]}
    lab.kube.create(ROLES, {"metadata": {"name": role}, "rules": [rule]})

    def give(person: Person) -> None:
        namespace, name = person.name.split(":")[-2:]
        subject = {"kind": "ServiceAccount", "namespace": namespace, "name": name}
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        body = {"metadata": {"name": role}, "roleRef": ref, "subjects": [subject]}
        lab.kube.create(BINDINGS, body)

    yield give
    lab.kube.delete(f"{BINDINGS}/{role}")
    lab.kube.delete(f"{ROLES}/{role}")


def test_account_of_the_namespace_is_no_controller_whatever_it_may(
    lab: Lab, ann: Member, grant: Callable[[Person], None]
) -> None:
    robot = account(lab.namespace, "default")
    grant(robot)
    assert Member(lab, robot).tries(owned(eager(lab), JOB_SET)) != ""


def test_operator_that_holds_the_right_makes_what_its_kind_is_made_of(
    lab: Lab, ann: Member, grant: Callable[[Person], None]
) -> None:
    operator = account("operators", lab.namespace)
    assert "has to name a queue" in Member(lab, let_edit(lab, operator)).tries(
        owned(eager(lab), JOB_SET)
    )
    grant(operator)
    eventually(lambda: Member(lab, operator).tries(owned(eager(lab), JOB_SET)) == "")


@pytest.mark.parametrize("controller", [True, False])
def test_waiting_job_is_not_given_an_owner_by_a_member(ann: Member, controller: bool) -> None:
    body = job(ann.lab)
    reference = owner("batch/v1", "Job", controller=controller)
    assert WHOSE in ann.tries(owned(job(ann.lab), reference))
    assert ann.creates(body) == ""
    patch = {"metadata": {"ownerReferences": [reference]}}
    assert WHOSE in ann.edits(f"{ann.path(body)}/w", patch)
    gone = {"metadata": {"ownerReferences": [reference], "labels": {"weir.dev/queue": None}}}
    assert ann.edits(f"{ann.path(body)}/w", gone) != ""


def test_owner_that_is_no_work_may_be_named_for_tidying_up(ann: Member) -> None:
    body = owned(job(ann.lab), CONFIG_MAP | {"controller": False})
    assert ann.tries(body) == ""


def test_pod_of_a_running_job_is_not_set_free(ann: Member) -> None:
    path = running_pod(ann)
    assert WHOSE in ann.edits(path, {"metadata": {"ownerReferences": None}})
    by_labels = {"metadata": {"labels": {"batch.kubernetes.io/controller-uid": "other"}}}
    assert "By its labels a controller knows what it made" in ann.edits(path, by_labels)
    assert ann.edits(path, {"metadata": {"annotations": {"note": "mine"}}}) == ""


def running_pod(ann: Member) -> str:
    """The path of the one pod of a Job that was let in."""
    ann.creates(job(ann.lab))
    ann.lab.kube.patch(f"{ann.path(job(ann.lab))}/w", {"spec": {"suspend": False}})
    pods = f"/api/v1/namespaces/{ann.lab.namespace}/pods"
    (pod,) = eventually(lambda: ann.lab.kube.get(pods)["items"])
    return f"{pods}/{pod['metadata']['name']}"


def test_gate_of_a_waiting_pod_is_taken_away_by_weir_alone(ann: Member) -> None:
    meta = {"name": "p", "namespace": ann.lab.namespace, "labels": {"weir.dev/queue": "research"}}
    spec = template(1)["spec"] | {"schedulingGates": [{"name": "weir.dev/queue"}, {"name": "mine"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    assert ann.creates(body) == ""
    path, ours = f"{ann.path(body)}/p", [{"name": "weir.dev/queue"}]
    assert ann.edits(path, {"spec": {"schedulingGates": ours}}) == ""
    assert "Only Weir takes the scheduling gate" in ann.edits(
        path, {"spec": {"schedulingGates": []}}
    )
    ann.lab.kube.patch(path, {"spec": {"schedulingGates": []}})


@pytest.mark.real
def test_deployments_and_what_adopts_and_orphans_keep_working(ann: Member) -> None:
    body = job(ann.lab) | {"apiVersion": "apps/v1", "kind": "Deployment"}
    body["metadata"]["annotations"] = {"weir.dev/replicas": "1"}
    body["spec"] = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "work"}},
        "template": template(1),
    }
    assert ann.creates(body) == ""
    path = f"{ann.path(body)}/w"
    ann.lab.kube.patch(path, {"spec": {"replicas": 1}})
    eventually(lambda: ann.lab.kube.get(path)["status"].get("readyReplicas") == 1)
    ann.lab.kube.delete(path, {"propagationPolicy": "Orphan"})
    sets = f"/apis/apps/v1/namespaces/{ann.lab.namespace}/replicasets"
    eventually(lambda: "ownerReferences" not in ann.lab.kube.get(sets)["items"][0]["metadata"])
    (left,) = ann.lab.kube.get(sets)["items"]
    ann.lab.kube.delete(f"{sets}/{left['metadata']['name']}")


@pytest.mark.parametrize("kind", ["Job", "ConfigMap"])
@pytest.mark.parametrize("controller", [True, False])
def test_work_that_names_an_owner_which_makes_no_such_thing_counts_as_its_own(
    lab: Lab, kind: str, controller: bool
) -> None:
    """Where no policy stands in the way either, such as in a cluster that is only observed."""
    named = lab.job("first", gpus=8)
    if kind == "ConfigMap":
        path = "/api/v1/namespaces/default/configmaps"
        named = lab.kube.create(path, {"metadata": {"name": "first"}})
    version = {"Job": "batch/v1", "ConfigMap": "v1"}[kind]
    reference = owner(version, kind, named["metadata"]["uid"], controller=controller)
    body = lab.manifest("second", gpus=8)
    body["metadata"]["ownerReferences"] = [reference | {"name": "first"}]
    lab.kube.create(path_of("Job", "default"), body)
    lab.cycle()
    assert {w.name for w in Workload.objects.all()} == {"first", "second"}
