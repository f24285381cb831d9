"""GPUs by names that no GPU class lists: known by their shape, so nobody gets them past the queues."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import Queue
from tests.scheduling.kube import node
from tests.scheduling.manifests import template
from tests.scheduling.services.guardrails.lab import Lab, Pass, job

from .people import Member

NAMES = (
    "deviceclass.resource.kubernetes.io/gpu.nvidia.com",
    "nvidia.com/mig-3g.20gb",
    "nvidia.com/gpu.shared",
    "amd.com/gpu",
    "amd.com/cpx_nps4",
    "gpu.intel.com/i915",
    "example.com/gpu",
)
every_name = pytest.mark.parametrize("name", NAMES)
UNNAMED = "has to name a queue"


def pod(lab: Lab, name: str, part: str = "containers") -> Any:
    spec = template(0)["spec"]
    asking = {"name": "asks", "image": "work", "resources": {"limits": {name: "8"}}}
    spec[part] = [*spec.get(part, []), asking]
    meta = {"name": "p", "namespace": lab.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@every_name
def test_bare_pod_with_gpus_of_no_class_is_refused(ann: Member, name: str) -> None:
    assert UNNAMED in ann.tries(pod(ann.lab, name))
    assert UNNAMED in ann.tries(pod(ann.lab, name, "initContainers"))


@every_name
def test_job_with_gpus_of_no_class_is_refused(ann: Member, name: str) -> None:
    body = job(ann.lab, queue="", gpus=0, suspend=False)
    container = body["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {name: "8"}}
    assert UNNAMED in ann.tries(body)
    body["metadata"]["labels"]["weir.dev/queue"] = "research"
    assert "Set spec.suspend: true" in ann.tries(body)
    body["spec"]["suspend"] = True
    assert ann.tries(body) == ""


def test_other_extended_resources_are_taken(ann: Member) -> None:
    for name in ("rdma.example/hca", "nvidia.com/hostdev"):
        assert ann.tries(pod(ann.lab, name)) == ""


@pytest.mark.parametrize("source", ["resourceClaimName", "resourceClaimTemplateName"])
def test_pod_that_claims_devices_is_refused(ann: Member, source: str) -> None:
    body = pod(ann.lab, "cpu")
    body["spec"]["containers"].pop()
    body["spec"]["resourceClaims"] = [{"name": "gpus", source: "eight"}]
    assert UNNAMED in ann.tries(body)


def test_quota_keeps_gpus_that_are_of_no_class_from_everybody(lab: Lab, guarded: Pass) -> None:
    odd = node(f"odd-{lab.namespace}")
    odd["status"]["allocatable"] |= {"nvidia.com/gpu.shared": "40", "amd.com/cpx_nps4": "8"}
    odd["status"]["capacity"] = dict(odd["status"]["allocatable"])
    path = f"/api/v1/nodes/{odd['metadata']['name']}"
    lab.kube.create("/api/v1/nodes", odd)
    try:
        lab.kube.patch(f"{path}/status", {"status": odd["status"]})
        assert Queue.objects.filter(namespace=lab.namespace).exists()
        guarded()
        hard = lab.hard_gpus()
        assert hard["requests.nvidia.com/gpu.shared"] == "0"
        assert hard["requests.amd.com/cpx_nps4"] == "0"
        assert hard["requests.nvidia.com/gpu"] == "12"
    finally:
        lab.kube.delete(path)
