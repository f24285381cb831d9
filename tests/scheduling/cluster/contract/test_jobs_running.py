"""Jobs with controllers behind them: pods, counts, conditions."""

from __future__ import annotations

from typing import Any

import pytest

from .api import MERGE, Api, causes, condition, eventually, job

pytestmark = pytest.mark.controllers


def _status(api: Api, name: str = "a") -> Any:
    return api.get("jobs", name).get("status", {})


def _pods(api: Api) -> list[Any]:
    return [p for p in api.get("pods")["items"] if not p["metadata"].get("deletionTimestamp")]


def _running(api: Api) -> list[str]:
    return [p["metadata"]["name"] for p in _pods(api) if p["status"]["phase"] == "Running"]


def test_suspended_job_has_no_pods_and_says_so(api: Api) -> None:
    api.create("jobs", job("a", suspend=True))
    eventually(lambda: condition(api.get("jobs", "a"), "Suspended") == "True")
    assert not _pods(api)
    assert "startTime" not in _status(api)


def test_admitted_job_starts_its_pods(api: Api) -> None:
    api.create("jobs", job("a", suspend=True, parallelism=2, completions=2))
    eventually(lambda: condition(api.get("jobs", "a"), "Suspended") == "True")
    api.patch("jobs", "a", {"spec": {"suspend": False}})
    eventually(lambda: _status(api).get("ready") == 2)
    assert condition(api.get("jobs", "a"), "Suspended") == "False"
    assert _status(api)["startTime"]
    for pod in _pods(api):
        reference = pod["metadata"]["ownerReferences"][0]
        assert (reference["kind"], reference["name"], reference["controller"]) == ("Job", "a", True)
        assert pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "a"


def test_eviction_by_suspending_deletes_pods_and_clears_the_start(api: Api) -> None:
    api.create("jobs", job("a"))
    eventually(lambda: _status(api).get("ready") == 1)
    api.patch("jobs", "a", {"spec": {"suspend": True}})
    eventually(lambda: not api.get("pods")["items"])
    eventually(lambda: "startTime" not in _status(api) and not _status(api).get("active"))
    change = {"suspend": False, "template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}
    api.patch("jobs", "a", {"spec": change})
    eventually(lambda: _status(api).get("ready") == 1)


def test_pods_that_suspending_takes_away_are_no_failures(api: Api) -> None:
    api.create("jobs", job("a", backoffLimit=0, parallelism=2, completions=2))
    eventually(lambda: _status(api).get("ready") == 2)
    for _ in range(2):
        api.patch("jobs", "a", {"spec": {"suspend": True}})
        eventually(lambda: not api.get("pods")["items"])
        eventually(lambda: condition(api.get("jobs", "a"), "Suspended") == "True")
        api.patch("jobs", "a", {"spec": {"suspend": False}})
        eventually(lambda: _status(api).get("ready") == 2)
    assert "failed" not in _status(api)
    assert condition(api.get("jobs", "a"), "Failed") != "True"


def test_pods_that_shrinking_takes_away_are_no_failures(api: Api) -> None:
    spec = {"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimit": 0}
    api.create("jobs", job("a", **spec))
    eventually(lambda: _status(api).get("ready") == 3)
    api.patch("jobs", "a", {"spec": {"completions": 1, "parallelism": 1}})
    eventually(lambda: len(api.get("pods")["items"]) == 1)
    api.patch("jobs", "a", {"spec": {"completions": 2, "parallelism": 2}})
    eventually(lambda: _status(api).get("ready") == 2)
    assert "failed" not in _status(api)
    assert condition(api.get("jobs", "a"), "Failed") != "True"
    key = "batch.kubernetes.io/job-completion-index"
    assert {p["metadata"]["annotations"][key] for p in _pods(api)} == {"0", "1"}


def test_template_is_fixed_until_the_pods_are_gone(api: Api) -> None:
    slow = job("a")
    slow["spec"]["template"]["spec"]["nodeSelector"] = {"nobody": "has-it"}
    api.create("jobs", slow)
    eventually(lambda: _status(api).get("active") == 1)
    change = {"template": {"spec": {"nodeSelector": None}}}
    refused = api.call("PATCH", api.path("jobs", "a"), {"spec": change}, MERGE)
    assert "spec.template" in causes(refused.expect(422))
    api.patch("jobs", "a", {"spec": {"suspend": True}})
    eventually(lambda: condition(api.get("jobs", "a"), "Suspended") == "True")
    eventually(lambda: not _status(api).get("active"))
    api.patch("jobs", "a", {"spec": {"suspend": False, **change}})
    eventually(lambda: _status(api).get("ready") == 1)


def test_job_completes(api: Api) -> None:
    api.create("jobs", job("a", seconds=2, parallelism=2, completions=3))
    eventually(lambda: condition(api.get("jobs", "a"), "Complete") == "True", within=60)
    assert _status(api)["succeeded"] == 3
    assert _status(api)["completionTime"]
    assert condition(api.get("jobs", "a"), "SuccessCriteriaMet") == "True"


def test_indexed_job_numbers_its_pods(api: Api) -> None:
    spec = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    api.create("jobs", job("a", seconds=2, **spec))
    pods = eventually(lambda: (found := _pods(api)) and len(found) == 3 and found)
    key = "batch.kubernetes.io/job-completion-index"
    assert sorted(p["metadata"]["annotations"][key] for p in pods) == ["0", "1", "2"]
    assert {p["metadata"]["name"].rsplit("-", 1)[0] for p in pods} == {"a-0", "a-1", "a-2"}
    eventually(lambda: _status(api).get("completedIndexes") == "0-2", within=60)


def test_elastic_indexed_job_shrinks_from_the_top(api: Api) -> None:
    spec = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    api.create("jobs", job("a", **spec))
    eventually(lambda: _status(api).get("ready") == 3)
    api.patch("jobs", "a", {"spec": {"completions": 1, "parallelism": 1}})
    eventually(lambda: _status(api).get("active") == 1)
    left = eventually(lambda: len(found := _pods(api)) == 1 and found)
    assert left[0]["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "0"


def test_deleted_pod_is_replaced(api: Api) -> None:
    api.create("jobs", job("a"))
    first = eventually(lambda: _pods(api))[0]["metadata"]
    api.delete("pods", first["name"], gracePeriodSeconds=0)
    eventually(lambda: (new := _pods(api)) and new[0]["metadata"]["uid"] != first["uid"], within=30)


def test_job_past_its_deadline_fails(api: Api) -> None:
    api.create("jobs", job("a", activeDeadlineSeconds=3))
    eventually(lambda: condition(api.get("jobs", "a"), "Failed") == "True", within=60)
    failed = next(c for c in _status(api)["conditions"] if c["type"] == "Failed")
    assert failed["reason"] == "DeadlineExceeded"


def test_job_without_backoff_fails_with_its_pod(api: Api) -> None:
    body = job("a", seconds=1, backoffLimit=0)
    template = body["spec"]["template"]
    template["metadata"]["annotations"]["weir.dev/exit-code"] = "3"
    template["spec"]["containers"][0]["command"] = ["sh", "-c", "exit 3"]
    api.create("jobs", body)
    eventually(lambda: condition(api.get("jobs", "a"), "Failed") == "True", within=60)
    failed = next(c for c in _status(api)["conditions"] if c["type"] == "Failed")
    assert failed["reason"] == "BackoffLimitExceeded"
    assert _status(api)["failed"] == 1


DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
IGNORED = {"rules": [{"action": "Ignore", **DISRUPTED}]}


def test_pod_that_was_disrupted_does_not_fail_a_job_that_ignores_it(api: Api) -> None:
    made = api.create("jobs", job("a", backoffLimit=0, podFailurePolicy=IGNORED))
    assert made["spec"]["podReplacementPolicy"] == "Failed"
    first = eventually(lambda: _running(api))[0]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": first}}
    api.call("POST", api.path("pods", first, "eviction"), eviction).expect(201)

    assert eventually(lambda: [name for name in _running(api) if name != first])
    assert not condition(api.get("jobs", "a"), "Failed")


def test_pod_that_failed_by_itself_fails_a_job_that_ignores_disruptions(api: Api) -> None:
    body = job("a", seconds=0, backoffLimit=0, podFailurePolicy=IGNORED)
    body["spec"]["template"]["metadata"]["annotations"]["weir.dev/exit-code"] = "3"
    body["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "exit 3"]
    api.create("jobs", body)
    eventually(lambda: condition(api.get("jobs", "a"), "Failed") == "True")


def test_failure_that_the_policy_forbids_fails_the_job_at_once(api: Api) -> None:
    forbidden = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}
    body = job("a", seconds=0, backoffLimit=6, podFailurePolicy={"rules": [forbidden]})
    body["spec"]["template"]["metadata"]["annotations"]["weir.dev/exit-code"] = "3"
    body["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "exit 3"]
    api.create("jobs", body)
    eventually(lambda: condition(api.get("jobs", "a"), "Failed") == "True")
    failed = next(c for c in _status(api)["conditions"] if c["type"] == "Failed")
    assert failed["reason"] == "PodFailurePolicy"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"podReplacementPolicy": "TerminatingOrFailed"}, "spec.podReplacementPolicy"),
        ({"restartPolicy": "OnFailure"}, "spec.template.spec.restartPolicy"),
    ],
)
def test_job_that_judges_failures_has_to_see_its_pods_end(
    api: Api, change: dict[str, str], field: str
) -> None:
    body = job("a", podFailurePolicy=IGNORED)
    holder = body["spec"]["template"]["spec"] if "restartPolicy" in change else body["spec"]
    holder |= change
    refused = api.call("POST", api.path("jobs"), body).expect(422)
    assert field in causes(refused)


def test_finished_job_goes_after_its_time_to_live(api: Api) -> None:
    api.create("jobs", job("a", seconds=1, ttlSecondsAfterFinished=2))
    eventually(lambda: api.call("GET", api.path("jobs", "a")).code == 404, within=60)
    eventually(lambda: not api.get("pods")["items"])


def test_pod_that_fits_nowhere_says_why(api: Api) -> None:
    body = job("a")
    body["spec"]["template"]["spec"]["nodeSelector"] = {"weir.dev/absent": "yes"}
    api.create("jobs", body)
    pod = eventually(
        lambda: next((p for p in _pods(api) if condition(p, "PodScheduled") == "False"), None)
    )
    said = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    assert said["reason"] == "Unschedulable"
    assert "didn't match Pod's node affinity/selector" in said["message"]


def test_gated_pods_wait(api: Api) -> None:
    body = job("a")
    body["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "weir.dev/gate"}]
    api.create("jobs", body)
    pod = eventually(
        lambda: next((p for p in _pods(api) if condition(p, "PodScheduled") == "False"), None)
    )
    said = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    assert said["reason"] == "SchedulingGated"
    api.patch("pods", pod["metadata"]["name"], {"spec": {"schedulingGates": None}})
    eventually(lambda: _status(api).get("ready") == 1)
