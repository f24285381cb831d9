"""Pods on nodes: start, run for their time, checkpoint, end."""

from __future__ import annotations

from .conftest import Cluster


def test_pod_starts_after_a_moment_and_ends_after_its_time(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", annotations={"weir.dev/run-seconds": "60"})
    cluster.step()
    assert len(cluster.pods("Pending")) == 1
    cluster.step(1)
    assert len(cluster.pods("Running")) == 1
    cluster.step(59)
    assert len(cluster.pods("Running")) == 1
    cluster.step(1)
    state = cluster.pods("Succeeded")[0]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["startedAt"], state["finishedAt"]) == (
        0,
        "2026-01-05T08:00:01Z",
        "2026-01-05T08:01:01Z",
    )


def test_pod_without_a_time_runs_for_ever(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a")
    cluster.step(1_000_000)
    assert len(cluster.pods("Running")) == 1


def test_exit_code_fails_the_pod(cluster: Cluster) -> None:
    cluster.node("n1")
    annotations = {"weir.dev/run-seconds": "5", "weir.dev/exit-code": "3"}
    cluster.job("a", annotations=annotations, backoffLimit=0)
    cluster.step(10)
    state = cluster.pods("Failed")[0]["status"]["containerStatuses"][0]["state"]
    assert state["terminated"]["exitCode"] == 3


def test_failing_container_restarts_in_place_until_the_limit(cluster: Cluster) -> None:
    cluster.node("n1")
    annotations = {"weir.dev/run-seconds": "5", "weir.dev/exit-code": "1"}
    pod = {"restartPolicy": "OnFailure"}
    cluster.job("a", annotations=annotations, backoffLimit=2, pod=pod)
    cluster.step(12)
    assert cluster.pods()[0]["status"]["containerStatuses"][0]["restartCount"] == 2
    cluster.step(60)
    failed = next(c for c in cluster.status("a")["conditions"] if c["type"] == "Failed")
    assert failed["reason"] == "BackoffLimitExceeded"


def test_deleted_pod_keeps_its_grace_on_the_clock(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a", pod={"terminationGracePeriodSeconds": 20})
    cluster.step(5)
    name = cluster.pods()[0]["metadata"]["name"]
    marked = cluster.api.delete("pods", name)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 20
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-05T08:00:25Z"
    cluster.step(19)
    assert cluster.api.call("GET", cluster.api.path("pods", name)).code == 200
    cluster.step(1)
    cluster.api.call("GET", cluster.api.path("pods", name)).expect(404)


def test_checkpoints_are_noted_at_their_interval(cluster: Cluster) -> None:
    cluster.node("n1")
    annotations = {"weir.dev/run-seconds": "100", "weir.dev/checkpoint-seconds": "30"}
    cluster.job("a", annotations=annotations)

    def noted() -> str | None:
        return cluster.pods()[0]["metadata"]["annotations"].get("weir.dev/checkpointed-at")

    cluster.step(30)
    assert noted() is None
    cluster.step(1)
    assert noted() == "2026-01-05T08:00:31Z"
    cluster.step(45)
    assert noted() == "2026-01-05T08:01:01Z"


def test_node_that_is_not_ready_starts_nothing(cluster: Cluster) -> None:
    cluster.node("n1")
    conditions = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    cluster.job("a", suspend=True)
    cluster.step()
    cluster.api.patch("jobs", "a", {"spec": {"suspend": False}})
    cluster.api.patch("nodes", "n1", conditions, sub="status")
    cluster.step(60)
    assert not cluster.pods("Running")
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    cluster.api.patch("nodes", "n1", ready, sub="status")
    cluster.step(60)
    assert len(cluster.pods("Running")) == 1


def test_pod_that_was_called_not_ready_while_its_node_was_unheard_of_is_ready_again(
    cluster: Cluster,
) -> None:
    cluster.node("n1")
    cluster.job("a", annotations={"weir.dev/run-seconds": "100"})
    cluster.step(5)
    name = cluster.pods("Running")[0]["metadata"]["name"]
    unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    cluster.api.patch("pods", name, unready, sub="status")
    cluster.step(1)
    conditions = cluster.pods("Running")[0]["status"]["conditions"]
    assert {c["type"]: c["status"] for c in conditions}["Ready"] == "True"
    cluster.step(100)
    assert len(cluster.pods("Succeeded")) == 1


def test_pods_of_a_removed_node_are_lost_and_replaced(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.job("a")
    cluster.step(5)
    cluster.node("n2")
    cluster.api.delete("nodes", "n1")
    cluster.step(60)
    running = cluster.pods("Running")
    assert [pod["spec"]["nodeName"] for pod in running] == ["n2"]
    assert cluster.status("a")["failed"] == 1


def test_job_suspended_and_started_again_goes_on_from_its_last_checkpoint(cluster: Cluster) -> None:
    cluster.node("n1")
    notes = {"weir.dev/run-seconds": "100", "weir.dev/checkpoint-seconds": "30"}
    cluster.job("a", annotations=notes, pod={"terminationGracePeriodSeconds": 5})
    cluster.step(1 + 70)
    cluster.api.patch("jobs", "a", {"spec": {"suspend": True}})
    cluster.step(10)
    assert cluster.pods() == []

    cluster.api.patch("jobs", "a", {"spec": {"suspend": False}})
    cluster.step(1 + 39)
    assert len(cluster.pods("Running")) == 1
    cluster.step(2)
    assert len(cluster.pods("Succeeded")) == 1
