"""What the Job controller does over time."""

from __future__ import annotations

from .conftest import Cluster

FAILING = {"weir.dev/run-seconds": "1", "weir.dev/exit-code": "1"}


def test_failed_pods_are_replaced_later_and_later(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", annotations=FAILING, backoffLimit=6)
    cluster.step(5)
    assert len(cluster.pods()) == 1
    cluster.step(10)
    assert len(cluster.pods()) == 2
    cluster.step(12)
    assert len(cluster.pods()) == 2
    cluster.step(12)
    assert len(cluster.pods()) == 3


def test_suspending_ever_so_often_is_no_failure(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", backoffLimit=0, pod={"terminationGracePeriodSeconds": 5})
    for _ in range(3):
        cluster.step(10)
        cluster.api.patch("jobs", "a", {"spec": {"suspend": True}})
        cluster.step(10)
        assert not cluster.pods()
        cluster.api.patch("jobs", "a", {"spec": {"suspend": False}})
    cluster.step(10)
    assert cluster.status("a").get("failed") is None
    assert cluster.status("a")["ready"] == 1


def test_suspended_job_counts_its_terminating_pods(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", pod={"terminationGracePeriodSeconds": 5})
    cluster.step(10)
    cluster.api.patch("jobs", "a", {"spec": {"suspend": True}})
    cluster.step()
    assert cluster.status("a")["terminating"] == 1
    cluster.step(5)
    assert cluster.status("a")["terminating"] == 0


def test_replacement_waits_for_the_end_of_the_old_pod_if_told(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", podReplacementPolicy="Failed", pod={"terminationGracePeriodSeconds": 20})
    cluster.step(5)
    cluster.api.delete("pods", cluster.pods()[0]["metadata"]["name"])
    cluster.step(15)
    assert len(cluster.pods()) == 1
    cluster.step(60)
    assert len(cluster.pods("Running")) == 1


def test_work_queue_job_ends_with_its_last_pod(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", parallelism=2, annotations={"weir.dev/run-seconds": "5"})
    cluster.step(20)
    assert "completions" not in cluster.api.get("jobs", "a")["spec"]
    assert cluster.status("a")["succeeded"] == 2
    assert cluster.status("a")["completionTime"]


def test_deadline_counts_from_admission(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", suspend=True, activeDeadlineSeconds=30)
    cluster.step(100)
    cluster.api.patch("jobs", "a", {"spec": {"suspend": False}})
    cluster.step(29)
    assert cluster.status("a")["ready"] == 1
    cluster.step(40)
    assert cluster.status("a")["conditions"][-1]["reason"] == "DeadlineExceeded"


def test_end_is_told_when_the_last_pod_is_gone(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", activeDeadlineSeconds=10, pod={"terminationGracePeriodSeconds": 20})
    cluster.step(15)
    kinds = {c["type"] for c in cluster.status("a")["conditions"]}
    assert kinds == {"FailureTarget"}
    cluster.step(20)
    kinds = {c["type"] for c in cluster.status("a")["conditions"]}
    assert kinds == {"FailureTarget", "Failed"}


def test_finished_job_is_removed_after_its_time_to_live(cluster: Cluster) -> None:
    cluster.node("n1")
    annotations = {"weir.dev/run-seconds": "5"}
    cluster.job("a", ttlSecondsAfterFinished=100, annotations=annotations)
    cluster.step(100)
    assert cluster.status("a")["succeeded"] == 1
    cluster.step(10)
    cluster.api.call("GET", cluster.api.path("jobs", "a")).expect(404)
    assert not cluster.pods()


def test_events_tell_the_story_and_fade_after_an_hour(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", annotations={"weir.dev/run-seconds": "5"})
    cluster.step(10)
    reasons = {e["reason"] for e in cluster.api.get("events")["items"]}
    assert {"SuccessfulCreate", "Completed"} <= reasons
    cluster.step(3600)
    assert not cluster.api.get("events")["items"]


def test_job_of_an_orphaned_pod_releases_it(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a")
    cluster.step(5)
    cluster.api.delete("jobs", "a")
    cluster.step()
    metadata = cluster.pods()[0]["metadata"]
    assert "finalizers" not in metadata
    assert "ownerReferences" not in metadata


def test_object_that_breaks_a_controller_does_not_stop_the_others(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("odd", annotations={"weir.dev/run-seconds": "soon"})
    cluster.job("good", annotations={"weir.dev/run-seconds": "5"})
    cluster.step(10)
    assert cluster.status("good")["succeeded"] == 1


def failed_creates(cluster: Cluster) -> int:
    events = cluster.api.get("events")["items"]
    return sum(event["reason"] == "FailedCreate" for event in events)


def test_pods_past_a_quota_are_tried_again_later_and_later(cluster: Cluster) -> None:
    hard = {"requests.nvidia.com/gpu": "0"}
    cluster.api.create("resourcequotas", {"metadata": {"name": "cap"}, "spec": {"hard": hard}})
    cluster.job("a", gpus=1)
    tries = []
    for seconds in (0, 1, 1, 1, 3, 1):
        cluster.step(seconds)
        tries.append(failed_creates(cluster))
    assert tries == [1, 2, 2, 3, 3, 4]

    cluster.api.patch("jobs", "a", {"spec": {"suspend": True}})
    cluster.step()
    cluster.api.patch("jobs", "a", {"spec": {"suspend": False}})
    cluster.step()
    assert failed_creates(cluster) == 5

    cluster.api.delete("resourcequotas", "cap")
    cluster.step(1)
    assert len(cluster.pods()) == 1
