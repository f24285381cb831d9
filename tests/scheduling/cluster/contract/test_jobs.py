"""Jobs: what a write may change (as on 1.36)."""

from __future__ import annotations

from typing import Any

import pytest

from .api import MERGE, Api, causes, job


def _template(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


def _refused(api: Api, change: Any, name: str = "a") -> dict[str, str]:
    return causes(api.call("PATCH", api.path("jobs", name), change, MERGE).expect(422))


AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100"]}]}
            ]
        }
    }
}


def test_new_job_gets_its_defaults_labels_and_selector(api: Api) -> None:
    made = api.create("jobs", job("a", suspend=True))
    uid, spec = made["metadata"]["uid"], made["spec"]
    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["suspend"]) == ("NonIndexed", True)
    assert spec["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
    labels = spec["template"]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "a"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"parallelism": -1}, "spec.parallelism"),
        ({"completions": -1}, "spec.completions"),
        ({"backoffLimit": -1}, "spec.backoffLimit"),
        ({"completionMode": "Indexed", "parallelism": 1}, "spec.completions"),
        ({"completionMode": "Sorted"}, "spec.completionMode"),
        ({"selector": {"matchLabels": {"a": "b"}}}, "spec.selector"),
    ],
)
def test_faulty_job_is_invalid_at_the_field(api: Api, spec: Any, field: str) -> None:
    refused = api.call("POST", api.path("jobs"), job("a", **spec)).expect(422)
    assert field in causes(refused)


def test_job_cannot_restart_its_pods_always(api: Api) -> None:
    body = job("a")
    body["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    refused = api.call("POST", api.path("jobs"), body).expect(422)
    assert "spec.template.spec.restartPolicy" in causes(refused)


def test_admission_is_one_patch(api: Api) -> None:
    api.create("jobs", job("a", suspend=True))
    change = _template(
        nodeSelector={"gpu": "h100"},
        affinity=AFFINITY,
        tolerations=[{"key": "gpu", "operator": "Exists"}],
    )
    change["spec"]["suspend"] = False
    change["spec"]["template"]["metadata"] = {"annotations": {"weir.dev/class": "h100"}}
    change["metadata"] = {"annotations": {"weir.dev/admitted": "yes"}}
    admitted = api.patch("jobs", "a", change)
    assert admitted["spec"]["suspend"] is False
    pod = admitted["spec"]["template"]["spec"]
    assert (pod["nodeSelector"], pod["affinity"]) == ({"gpu": "h100"}, AFFINITY)


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"gpu": "h100"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"affinity": AFFINITY},
        {"schedulingGates": [{"name": "weir.dev/gate"}]},
    ],
)
def test_scheduling_directives_are_free_while_suspended_only(api: Api, spec: Any) -> None:
    api.create("jobs", job("a", suspend=True))
    api.patch("jobs", "a", _template(**spec))
    api.create("jobs", job("b"))
    assert "spec.template" in _refused(api, _template(**spec), "b")


def test_resources_are_free_while_suspended_only(api: Api) -> None:
    limits = {"resources": {"limits": {"example.com/mig-1g": "1"}}}
    container = {"name": "main", "image": "busybox", "command": ["sleep", "3600"], **limits}
    api.create("jobs", job("a", suspend=True))
    patched = api.patch("jobs", "a", _template(containers=[container]))
    shown = patched["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert shown == {"limits": {"example.com/mig-1g": "1"}}
    api.create("jobs", job("b"))
    assert "spec.template" in _refused(api, _template(containers=[container]), "b")


def test_rest_of_the_template_is_immutable_even_while_suspended(api: Api) -> None:
    api.create("jobs", job("a", suspend=True))
    container = {"name": "main", "image": "other", "command": ["sleep", "3600"]}
    assert "spec.template.spec" in _refused(api, _template(containers=[container]))
    assert "spec.template.spec" in _refused(api, _template(priorityClassName="other"))
    spread = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    term = {"weight": 1, "podAffinityTerm": {"topologyKey": "a", "labelSelector": {}}}
    spread["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"].append(term)
    assert "spec.template.spec" in _refused(api, _template(affinity=spread))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"completions": 2}, "spec.completions"),
        ({"completionMode": "Indexed"}, "spec.completionMode"),
        ({"selector": {"matchLabels": {"a": "b"}}}, "spec.selector"),
    ],
)
def test_what_defines_a_job_is_immutable(api: Api, change: Any, field: str) -> None:
    api.create("jobs", job("a", suspend=True))
    assert field in _refused(api, {"spec": change})


def test_indexed_job_grows_and_shrinks_in_tandem_only(api: Api) -> None:
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    api.create("jobs", job("a", suspend=True, **spec))
    grown = api.patch("jobs", "a", {"spec": {"completions": 4, "parallelism": 4}})
    assert (grown["spec"]["completions"], grown["spec"]["parallelism"]) == (4, 4)
    api.patch("jobs", "a", {"spec": {"completions": 1, "parallelism": 1}})
    assert "spec.completions" in _refused(api, {"spec": {"completions": 3}})


def test_parallelism_and_suspend_are_free(api: Api) -> None:
    api.create("jobs", job("a", completions=4))
    for change in ({"parallelism": 3}, {"suspend": True}, {"parallelism": 0}):
        api.patch("jobs", "a", {"spec": change})
