"""Status apart from spec, binding, eviction."""

from __future__ import annotations

from typing import Any

import pytest

from .api import MERGE, Api, condition, deployment, eventually, job, pod


def test_status_is_not_written_with_the_object(api: Api) -> None:
    body = job("a", suspend=True) | {"status": {"active": 7}}
    assert api.create("jobs", body)["status"].get("active") is None
    patched = api.patch("jobs", "a", {"status": {"active": 7}, "spec": {"parallelism": 2}})
    assert patched["spec"]["parallelism"] == 2
    assert patched["status"].get("active") is None


def test_spec_is_not_written_with_the_status(api: Api) -> None:
    api.create("pods", pod("a"))
    change = {"spec": {"activeDeadlineSeconds": 5}, "status": {"message": "hello"}}
    patched = api.patch("pods", "a", change, sub="status")
    assert patched["status"]["message"] == "hello"
    assert "activeDeadlineSeconds" not in patched["spec"]


@pytest.mark.parametrize("plural", ["jobs", "pods", "deployments"])
def test_annotations_may_be_written_with_the_status(api: Api, plural: str) -> None:
    made = {"jobs": job("a", suspend=True), "pods": pod("a"), "deployments": deployment("a")}
    api.create(plural, made[plural])
    change = {"metadata": {"annotations": {"said": "beside"}}}
    assert (
        api.patch(plural, "a", change, sub="status")["metadata"]["annotations"]["said"] == "beside"
    )


def test_status_write_with_a_stale_version_is_a_conflict(api: Api) -> None:
    stale = api.create("pods", pod("a"))
    api.patch("pods", "a", {"metadata": {"labels": {"a": "b"}}})
    stale["status"]["message"] = "late"
    api.call("PUT", api.path("pods", "a", "status"), stale).expect(409)


def test_status_is_read_by_itself(api: Api) -> None:
    made = api.create("pods", pod("a"))
    shown = api.call("GET", api.path("pods", "a", "status")).expect(200)
    assert shown["metadata"]["uid"] == made["metadata"]["uid"]


def _bind(api: Api, name: str, node: str, **notes: str) -> Any:
    binding = {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "annotations": notes},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }  # fmt: skip
    return api.call("POST", api.path("pods", name, "binding"), binding)


def test_binding_sets_the_node_once(api: Api) -> None:
    api.create("pods", pod("a", schedulerName="by-hand"))
    bound = _bind(api, "a", "contract-nowhere").expect(201)
    assert bound["status"] == "Success"
    stored = api.call("GET", api.path("pods", "a"))
    if stored.code == 200:  # the pod collector may have taken the pod of a missing node already
        assert stored.body["spec"]["nodeName"] == "contract-nowhere"
        assert condition(stored.body, "PodScheduled") == "True"
        _bind(api, "a", "contract-elsewhere").expect(409)


def test_binding_writes_its_annotations_to_the_pod(api: Api) -> None:
    body = pod("a", schedulerName="by-hand")
    body["metadata"]["annotations"] = {"kept": "1", "said": "before"}
    api.create("pods", body)
    _bind(api, "a", "contract-node", said="by the scheduler").expect(201)
    notes = api.get("pods", "a")["metadata"]["annotations"]
    assert (notes["kept"], notes["said"]) == ("1", "by the scheduler")


def test_gated_pod_cannot_be_bound_until_its_gate_is_gone(api: Api) -> None:
    api.create("pods", pod("a", schedulingGates=[{"name": "weir.dev/admission"}]))
    _bind(api, "a", "contract-nowhere").expect(409)
    patched = api.patch("pods", "a", {"spec": {"schedulingGates": None}})
    assert not patched["spec"].get("schedulingGates")


def test_gate_cannot_be_added_later(api: Api) -> None:
    api.create("pods", pod("a"))
    change = {"spec": {"schedulingGates": [{"name": "weir.dev/admission"}]}}
    api.call("PATCH", api.path("pods", "a"), change, MERGE).expect(422)


def test_eviction_of_a_waiting_pod_deletes_it(api: Api) -> None:
    api.create("pods", pod("a"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    api.call("POST", api.path("pods", "a", "eviction"), eviction).expect(201)
    api.call("GET", api.path("pods", "a")).expect(404)


def test_eviction_of_nothing_is_not_found(api: Api) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    api.call("POST", api.path("pods", "a", "eviction"), eviction).expect(404)


@pytest.mark.controllers
def test_eviction_against_a_budget_is_too_many_requests(api: Api) -> None:
    body = job("a")
    body["spec"]["template"]["metadata"]["labels"] = {"guarded": "yes"}
    budget = {
        "metadata": {"name": "guard"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"guarded": "yes"}}},
    }
    api.create("poddisruptionbudgets", budget)
    api.create("jobs", body)
    running = eventually(lambda: api.get("pods", fieldSelector="status.phase=Running")["items"])
    name = running[0]["metadata"]["name"]
    eventually(
        lambda: api.get("poddisruptionbudgets", "guard")["status"].get("currentHealthy") == 1
    )
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = api.path("pods", name, "eviction")
    refused = api.call("POST", path, eviction).expect(429)
    assert refused["reason"] == "TooManyRequests"
    assert refused["details"]["causes"][0]["reason"] == "DisruptionBudget"
    api.patch("poddisruptionbudgets", "guard", {"spec": {"minAvailable": 0}})
    eventually(lambda: api.call("POST", path, eviction).code == 201)
