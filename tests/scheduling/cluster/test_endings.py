"""Why work ended, as the kubelet and controllers write it."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.adapters.pods import trim
from scheduling.cluster.vocabulary.endings import EndCause, Ending, of_pod
from tests.scheduling import manifests
from tests.scheduling.cluster.test_adapters import observe, stored
from tests.scheduling.operators import adapter_of

Json = dict[str, Any]
C = EndCause


def pod(name: str = "p0", **status: Any) -> Json:
    meta = {
        "name": name,
        "uid": name,
        "namespace": "ml",
        "creationTimestamp": "2026-01-05T09:00:00Z",
    }
    return {"metadata": meta, "spec": {"containers": []}, "status": {"phase": "Failed", **status}}


def ended(code: int, reason: str = "Error", message: str = "") -> Json:
    return {"state": {"terminated": {"exitCode": code, "reason": reason, "message": message}}}


def waiting(reason: str, message: str = "", last: Json | None = None) -> Json:
    return {"state": {"waiting": {"reason": reason, "message": message}}, "lastState": last or {}}


def containers(*states: Json) -> Json:
    return pod(containerStatuses=list(states))


def target(reason: str) -> Json:
    return pod(conditions=[{"type": "DisruptionTarget", "status": "True", "reason": reason}])


@pytest.mark.parametrize(
    ("seen", "cause", "code"),
    [
        pytest.param(containers(ended(0, "Completed")), None, None, id="succeeded"),
        pytest.param(containers(ended(3)), C.EXIT_CODE, 3, id="exit-code"),
        pytest.param(containers(ended(137, "OOMKilled")), C.OUT_OF_MEMORY, 137, id="oom"),
        pytest.param(containers(ended(128, "StartError")), C.CONTAINER, 128, id="no-start"),
        pytest.param(containers(waiting("ImagePullBackOff")), C.IMAGE, None, id="image"),
        pytest.param(containers(waiting("PodInitializing")), None, None, id="starts"),
        pytest.param(containers({"state": {"running": {}}, "lastState": ended(1)["state"]}), None, None,
                     id="runs-again"),
        pytest.param(containers(waiting("CrashLoopBackOff", last=ended(1)["state"])), C.EXIT_CODE, 1,
                     id="crash-loop"),
        pytest.param(pod(initContainerStatuses=[ended(2)]), C.EXIT_CODE, 2, id="init-container"),
        pytest.param(containers(ended(1), ended(137, "OOMKilled")), C.OUT_OF_MEMORY, 137,
                     id="first-cause-of-two"),
        pytest.param(pod(reason="Evicted", message="low on memory"), C.EVICTED, None, id="kubelet"),
        pytest.param(pod(reason="NodeLost"), C.NODE_LOST, None, id="node-lost"),
        pytest.param(target("DeletionByTaintManager"), C.NODE_LOST, None, id="taint"),
        pytest.param(target("PreemptionByScheduler"), C.EVICTED, None, id="preempted"),
        pytest.param({"metadata": {}, "spec": {}}, None, None, id="no-status"),
        pytest.param(containers(ended(True)), C.EXIT_CODE, None, id="odd-code"),
    ],
)  # fmt: skip
def test_pod(seen: Json, cause: EndCause | None, code: int | None) -> None:
    found = of_pod(seen)

    assert (found and found.cause, found and found.exit_code) == (cause, code)


def test_pod_that_is_told_to_go_came_to_no_harm() -> None:
    seen = containers(ended(143))
    seen["metadata"]["deletionTimestamp"] = "2026-01-05T09:10:00Z"

    assert of_pod(seen) is None


def failed(reason: str, message: str = "") -> Json:
    job = stored(
        {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "w", "namespace": "ml"},
            "spec": {"parallelism": 2, "template": manifests.template()},
        }
    )  # fmt: skip
    said = {"type": "Failed", "status": "True", "reason": reason, "message": message}
    return {**job, "status": {"conditions": [said]}}


def test_pods_say_more_than_that_a_job_failed() -> None:
    seen = observe(failed("BackoffLimitExceeded", "too often"), trim(containers(ended(5))))

    assert seen.ending == Ending(C.EXIT_CODE, 5)


def test_limit_says_more_than_pods_that_were_told_to_go() -> None:
    seen = observe(failed("DeadlineExceeded", "was active longer"), trim(containers(ended(1))))

    assert seen.ending is not None
    assert seen.ending.cause is C.RUN_TIME_LIMIT


def test_without_pods_the_message_of_the_job_remains() -> None:
    assert observe(failed("BackoffLimitExceeded", "too often")).ending == Ending(
        C.FAILED, said="too often"
    )


@pytest.mark.parametrize(
    ("phases", "outcome"),
    [
        (("Failed", "Succeeded", "Succeeded"), "succeeded"),
        (("Failed", "Succeeded", "Running"), ""),
        (("Failed", "Succeeded"), "failed"),
        (("Succeeded", "Succeeded"), "succeeded"),
        (("Failed",), ""),
    ],
)
def test_group_whose_failed_pod_was_replaced_has_succeeded(
    phases: tuple[str, ...], outcome: str
) -> None:
    notes = {"weir.dev/pod-group-total": "2", "weir.dev/gpu-class": "h100"}
    names = {"weir.dev/queue": "research", "weir.dev/pod-group": "pair"}
    pods = [pod(f"p{place}", phase=phase) for place, phase in enumerate(phases)]
    for each in pods:
        each["metadata"] |= {"labels": names, "annotations": notes}
    group = {"metadata": {**pods[0]["metadata"], "name": "pair"}}

    seen = adapter_of("PodGroup").observe(group, [trim(each) for each in pods], ())

    assert (seen.outcome, seen.members) == (outcome, min(2, len(phases)))
