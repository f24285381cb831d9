"""RuntimeClasses, and what they add to the pods that name them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from .api import Api, causes, enforce_quota, eventually, job, pod

CLASSES = "runtimeclasses"


@pytest.fixture
def sandbox(api: Api) -> Iterator[str]:
    """A class whose pods take 250m of CPU and 120Mi of memory on top."""
    name = f"contract-{uuid.uuid4().hex[:10]}"
    fixed = {"cpu": "250m", "memory": "120Mi"}
    body = {"metadata": {"name": name}, "handler": "sandbox", "overhead": {"podFixed": fixed}}
    api.create(CLASSES, body)
    yield name
    api.delete(CLASSES, name)


def test_class_is_kept_as_it_is_written(api: Api, sandbox: str) -> None:
    made = api.get(CLASSES, sandbox)
    assert (made["apiVersion"], made["kind"]) == ("node.k8s.io/v1", "RuntimeClass")
    assert made["overhead"]["podFixed"] == {"cpu": "250m", "memory": "120Mi"}
    assert sandbox in {c["metadata"]["name"] for c in api.get(CLASSES)["items"]}


def test_handler_is_required_and_never_changes(api: Api, sandbox: str) -> None:
    answer = api.call("POST", api.path(CLASSES), {"metadata": {"name": "no-handler"}})
    assert causes(answer.expect(422)) == {"handler": "FieldValueRequired"}
    path = api.path(CLASSES, sandbox)
    answer = api.call("PATCH", path, {"handler": "other"}, "application/merge-patch+json")
    assert causes(answer.expect(422)) == {"handler": "FieldValueInvalid"}


def test_pod_is_given_the_overhead_of_its_class(api: Api, sandbox: str) -> None:
    made = api.create("pods", pod("a", runtimeClassName=sandbox))
    assert made["spec"]["overhead"] == {"cpu": "250m", "memory": "120Mi"}


def test_pod_may_state_the_overhead_of_its_class(api: Api, sandbox: str) -> None:
    same = {"cpu": "0.25", "memory": "120Mi"}
    api.create("pods", pod("a", runtimeClassName=sandbox, overhead=same))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        ({"runtimeClassName": "absent"}, 'pod rejected: RuntimeClass "absent" not found'),
    ],
)
def test_pod_of_no_class_or_an_absent_one_is_refused(
    api: Api, spec: dict[str, object], said: str
) -> None:
    refused = api.call("POST", api.path("pods"), pod("a", **spec)).expect(403)
    assert refused["message"] == f'pods "a" is forbidden: {said}'


def test_pod_with_another_overhead_than_its_class_is_refused(api: Api, sandbox: str) -> None:
    other = pod("a", runtimeClassName=sandbox, overhead={"cpu": "1"})
    refused = api.call("POST", api.path("pods"), other).expect(403)
    said = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    assert refused["message"] == f'pods "a" is forbidden: {said}'


@pytest.fixture
def enclave(api: Api) -> Iterator[str]:
    """A class whose pods run on nodes of its own."""
    name = f"contract-{uuid.uuid4().hex[:10]}"
    scheduling = {
        "nodeSelector": {"weir.dev/enclave": "yes"},
        "tolerations": [{"key": "enclave", "operator": "Exists", "effect": "NoSchedule"}],
    }
    body = {"metadata": {"name": name}, "handler": "enclave", "scheduling": scheduling}
    api.create(CLASSES, body)
    yield name
    api.delete(CLASSES, name)


def test_pod_is_sent_to_the_nodes_of_its_class(api: Api, enclave: str) -> None:
    selector = {"weir.dev/absent": "yes"}
    made = api.create("pods", pod("a", runtimeClassName=enclave, nodeSelector=selector))
    assert made["spec"]["nodeSelector"] == {**selector, "weir.dev/enclave": "yes"}
    assert "enclave" in [t["key"] for t in made["spec"]["tolerations"]]


def test_pods_of_a_job_are_given_what_their_class_adds(
    api: Api, sandbox: str, enclave: str
) -> None:
    for name, runtime in (("a", sandbox), ("b", enclave)):
        body = job(name)
        body["spec"]["template"]["spec"]["runtimeClassName"] = runtime
        api.create("jobs", body)
    found = eventually(lambda: (pods := api.get("pods")["items"]) and len(pods) == 2 and pods)

    specs = {p["metadata"]["labels"]["job-name"]: p["spec"] for p in found}
    assert specs["a"]["overhead"] == {"cpu": "250m", "memory": "120Mi"}
    assert specs["b"]["nodeSelector"] == {"weir.dev/enclave": "yes"}


def test_pod_that_wants_other_nodes_than_its_class_is_refused(api: Api, enclave: str) -> None:
    other = pod("a", runtimeClassName=enclave, nodeSelector={"weir.dev/enclave": "no"})
    refused = api.call("POST", api.path("pods"), other).expect(403)
    said = (
        "conflict: runtimeClass.scheduling.nodeSelector[weir.dev/enclave] = yes;"
        " pod.spec.nodeSelector[weir.dev/enclave] = no"
    )
    assert refused["message"] == f'pods "a" is forbidden: {said}'


def test_quota_counts_the_overhead(api: Api, sandbox: str) -> None:
    enforce_quota(api, "cap", {"requests.cpu": "1"})
    wants = {"resources": {"requests": {"cpu": "900m"}}}
    container = {"name": "main", "image": "busybox", **wants}
    answer = api.call(
        "POST", api.path("pods"), pod("a", runtimeClassName=sandbox, containers=[container])
    )
    assert "requested: requests.cpu=1150m" in answer.expect(403)["message"]
