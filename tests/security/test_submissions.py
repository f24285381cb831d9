"""A researcher hides GPUs, priority or run time in a manifest and sends it by page and by API."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import Persona, User
from scheduling.cluster.vocabulary import labels
from scheduling.models import MILLI, PriorityClass
from scheduling.services.workloads import submit as workloads
from tests.factories import example_cluster
from tests.scheduling import manifests

pytestmark = pytest.mark.django_db
GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
LIMIT = {labels.RUN_TIME_LIMIT: "1h"}


@pytest.fixture
def cluster(db):
    """A researcher may have 8 GPUs, for a day."""
    made = example_cluster()
    Persona.objects.filter(name="researcher").update(
        max_gpus_per_workload=8 * MILLI, max_run_time_s=86_400
    )
    return made


def made(sent, named):
    """The object as the API server would make it."""
    sent.append(named)
    body = named["manifest"]
    return {**body, "metadata": {**body["metadata"], "uid": f"uid-{len(sent)}"}}


@pytest.fixture
def created(monkeypatch):
    """What reached the cluster, of which nothing may."""
    sent = []
    monkeypatch.setattr(workloads, "submit", lambda *args, **named: made(sent, named))
    return sent


def a_job(**pod):
    container = {"name": "c", "image": "i", "resources": {"limits": {GPU: "1"}}}
    spec = {"containers": [container], "restartPolicy": "Never", **pod}
    return put(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "w", "labels": {}},
            "spec": {"suspend": True, "template": {"spec": spec}},
        }
    )


def put(manifest):
    """``manifest`` in the queue of the researcher, otherwise as they may submit it."""
    meta = manifest["metadata"]
    meta["namespace"] = meta["labels"][labels.QUEUE] = "pretraining"
    meta["annotations"] = {**meta.get("annotations", {}), **LIMIT}
    return manifest


def asking(quantity, name=GPU):
    return [{"name": "c", "image": "i", "resources": {"limits": {name: quantity}}}]


def of_kind(kind, edit):
    manifest = put(deepcopy(manifests.MANIFESTS[kind]("w")))
    edit(manifest["spec"])
    return manifest


def evaluators(spec):
    roles = spec["pytorchReplicaSpecs"]
    roles["Evaluator"] = {"replicas": 64, "template": roles["Worker"]["template"]}


def submitter(spec):
    spec["submitterPodTemplate"] = manifests.template(64)


def autoscaler(spec):
    spec["autoscalerOptions"] = {"resources": {"limits": {GPU: "64"}}}


def below_zero(spec):
    spec["replicatedJobs"].append(deepcopy(spec["replicatedJobs"][1]))
    spec["replicatedJobs"][1]["replicas"], spec["replicatedJobs"][2]["replicas"] = 32, -31


HIDDEN = {
    "init container": a_job(containers=asking("0"), initContainers=asking("64")),
    "sidecar": a_job(initContainers=[{**asking("64")[0], "restartPolicy": "Always"}]),
    "overhead": a_job(overhead={GPU: "64"}),
    "resources of the pod": a_job(containers=asking("0"), resources={"limits": {GPU: "64"}}),
    "1k": a_job(containers=asking("1k")),
    "64000m": a_job(containers=asking("64000m")),
    "6.4e1": a_job(containers=asking("6.4e1")),
    "64.0": a_job(containers=asking("64.0")),
    "request of zero": a_job(
        containers=[{"name": "c", "resources": {"requests": {GPU: 0}, "limits": {GPU: 64}}}]
    ),
    "minus among them": a_job(containers=[*asking("64"), *asking("-63")]),
    "too many digits": a_job(containers=asking("1e999999999")),
    "second resource": a_job(
        containers=[{"name": "c", "resources": {"limits": {GPU: "1", MIG: "64"}}}]
    ),
    "resource of no class": a_job(
        containers=[{"name": "c", "resources": {"limits": {GPU: "1", "amd.com/gpu": "64"}}}]
    ),
    "unknown role": of_kind("PyTorchJob", evaluators),
    "submitter": of_kind("RayJob", submitter),
    "autoscaler": of_kind("RayCluster", autoscaler),
    "less than no replicas": of_kind("JobSet", below_zero),
    "no limit in a field that is none": of_kind(
        "JobSet", lambda spec: spec.update(activeDeadlineSeconds=60)
    ),
    "priority of the cluster's own pods": a_job(priorityClassName="system-node-critical"),
    "priority without GPUs": a_job(
        containers=[{"name": "c", "image": "i"}], priorityClassName="system-cluster-critical"
    ),
}
HIDDEN["no limit in a field that is none"]["metadata"]["annotations"].pop(labels.RUN_TIME_LIMIT)


def by_api(manifest):
    client = APIClient()
    client.force_login(User.objects.get(username="researcher"))
    return client.post("/api/v1/clusters/fra1/workloads", {"manifest": manifest}, format="json")


@pytest.mark.parametrize("attack", HIDDEN)
def test_what_is_hidden_in_a_manifest_is_refused_by_the_api(attack, cluster, created):
    response = by_api(HIDDEN[attack])
    assert (response.status_code, created) == (400, []), response.data
    assert response.data["fields"] or response.data["code"]


@pytest.mark.parametrize("attack", HIDDEN)
def test_what_is_hidden_in_a_manifest_is_refused_by_the_page(attack, cluster, created, client):
    client.force_login(User.objects.get(username="researcher"))
    text = json.dumps(HIDDEN[attack])
    response = client.post("/c/fra1/submit/?as=manifest", {"text": text})
    assert (response.status_code, created) == (422, [])


def test_honest_work_of_kinds_without_a_field_for_the_limit_is_taken(cluster, created):
    by_api(of_kind("JobSet", lambda spec: None))
    by_api(a_job())
    assert len(created) == 2


def test_who_may_use_one_class_cannot_get_another_by_naming_none(cluster, created):
    given = cluster.gpu_classes.get(name="l4")
    Persona.objects.get(name="researcher").gpu_classes.set([given])
    elsewhere = a_job(nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    assert list(by_api(elsewhere).data["fields"]) == ["gpu_classes"]
    assert created == []


def test_default_priority_class_is_judged_as_if_it_were_named(cluster, created):
    low = PriorityClass.objects.get(name="best-effort")
    Persona.objects.get(name="researcher").priority_classes.set([low])
    assert list(by_api(a_job()).data["fields"]) == ["priority_class"]
    named = a_job()
    named["metadata"]["labels"][labels.PRIORITY_CLASS] = "no-such-class"
    assert list(by_api(named).data["fields"]) == ["priority_class"]
    assert created == []
    named["metadata"]["labels"][labels.PRIORITY_CLASS] = "best-effort"
    by_api(named)
    assert len(created) == 1
