"""The shape of a manifest: the first part at fault is named by its path."""

from contextlib import suppress

import pytest

from scheduling.services.errors import ServiceError
from scheduling.services.workloads import submit as workloads
from scheduling.services.workloads.shapes import check
from tests.factories import make_cluster
from tests.scheduling import manifests
from tests.security.hostile import paths, replaced


def job(**parts):
    return {
        "kind": "Job",
        "metadata": {"name": "x", **parts.pop("metadata", {})},
        "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}},
        **parts,
    }


POD = "spec.template.spec"
FAULTS = {
    "annotations that are a list": (job(metadata={"annotations": []}), "metadata.annotations"),
    "annotations that are text": (job(metadata={"annotations": "x"}), "metadata.annotations"),
    "labels that are a number": (job(metadata={"labels": 5}), "metadata.labels"),
    "a label that is a number": (job(metadata={"labels": {"a": 5}}), "metadata.labels"),
    "a label that is a map": (job(metadata={"labels": {"a": {}}}), "metadata.labels"),
    "an integer key": (job(metadata={"labels": {1: "a"}}), "metadata.labels"),
    "an integer key below spec": (job(spec={1: {}}), "spec.1"),
    "a namespace that is a path": (job(metadata={"namespace": "a/../b"}), "metadata.namespace"),
    "a namespace that is a number": (job(metadata={"namespace": 5}), "metadata.namespace"),
    "metadata that is a list": (job() | {"metadata": []}, "metadata"),
    "no metadata": ({"kind": "Job"}, "metadata"),
    "a spec that is a list": (job(spec=[]), "spec"),
    "a template that is text": (job(spec={"template": "x"}), "spec.template"),
    "containers that are a map": (
        job(spec={"template": {"spec": {"containers": {}}}}),
        f"{POD}.containers",
    ),
    "a container that is null": (
        job(spec={"template": {"spec": {"containers": [None]}}}),
        f"{POD}.containers",
    ),
    "limits that are a list": (
        job(spec={"template": {"spec": {"containers": [{"resources": {"limits": []}}]}}}),
        f"{POD}.containers[0].resources.limits",
    ),
    "a limit that is true": (
        job(spec={"template": {"spec": {"containers": [{"resources": {"limits": {"a": True}}}]}}}),
        f"{POD}.containers[0].resources.limits",
    ),
    "parallelism past 32 bits": (job(spec={"parallelism": 2**31}), "spec.parallelism"),
    "parallelism that is a fraction": (job(spec={"parallelism": 1.5}), "spec.parallelism"),
    "parallelism that is text": (job(spec={"parallelism": "1"}), "spec.parallelism"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_part_of_the_wrong_shape_is_named_by_its_path(what):
    manifest, path = FAULTS[what]
    with pytest.raises(ServiceError) as refused:
        check(manifest)
    assert (refused.value.code, refused.value.field) == ("invalid", path)
    assert refused.value.sentence
    assert refused.value.remedy


def test_manifest_of_endless_depth_is_refused():
    deep: list = []
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(ServiceError):
        check(job(spec={"x": deep}))


def test_parts_that_are_null_count_as_left_out():
    check(job(metadata={"labels": None, "annotations": None, "namespace": None}, spec=None))


@pytest.mark.parametrize("kind", manifests.MANIFESTS)
def test_manifest_of_each_kind_passes(kind):
    check(manifests.MANIFESTS[kind]("work"))


def test_job_of_every_feature_passes():
    pod = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
        "securityContext": {"runAsUser": 1},
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
        "containers": [
            {
                "name": "main",
                "args": ["--size", "5"],
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
                "resources": {"claims": [{"name": "gpu"}], "limits": {"cpu": 0.5, "memory": "1Gi"}},
            }
        ],
    }
    pattern = {"type": "DisruptionTarget", "status": "True"}
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [pattern]}]}
    check(job(spec={"template": {"spec": pod}, "podFailurePolicy": policy, "parallelism": 0}))


WRONG = {"text": "x", "a number": 5, "a list": [5], "a map": {"a": [5]}, "null": None}


@pytest.mark.django_db
@pytest.mark.parametrize("kind", manifests.MANIFESTS)
def test_each_part_of_each_kind_may_be_wrong_and_reading_only_refuses(kind):
    cluster, whole = make_cluster(), manifests.MANIFESTS[kind]("work")
    for path in paths(whole):
        for part in WRONG.values():
            with suppress(ServiceError):
                workloads.read(cluster, replaced(whole, path, part))
