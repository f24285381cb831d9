"""`manage.py cluster`: what people type to bring a cluster under Weir."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from scheduling.cluster.connection.client import Client
from scheduling.cluster.vocabulary.labels import QUEUE, USER
from scheduling.models import Cluster, ClusterMode
from tests.scheduling.kube import JOBS, eventually, node, policy
from workshop.testbed.server import EmbeddedServer


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("cluster", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def cluster(db: None) -> Iterator[Cluster]:
    with EmbeddedServer(port=0) as server:
        made = policy("observe", server.url, "research")
        kube = Client.connect(made)
        kube.create("/api/v1/nodes", node("n1"))
        kube.close()
        yield made


def test_added_cluster_is_listed(db: None) -> None:
    said = run("add", "fra1", "--kubeconfig", "/etc/kube/config", "--context", "fra1")

    assert "manage.py cluster check fra1" in said
    assert "fra1                 observe  never planned  context fra1" in run("list")


def test_check_says_that_nothing_is_missing(cluster: Cluster) -> None:
    said = run("check", "test")

    assert "ok    nodes: h100: 8 GPUs on 1 node." in said
    assert said.endswith("Nothing needed is missing.\n")


def test_check_fails_with_a_remedy_when_something_is_missing(cluster: Cluster) -> None:
    cluster.gpu_classes.update(node_labels={"gpu": "b200"})
    with pytest.raises(CommandError, match="1 needed thing is missing") as failed:
        run("check", "test")

    assert failed.value.returncode == 1


def test_guardrails_are_compared_and_not_written(cluster: Cluster) -> None:
    said = run("guardrails", "test")

    assert "Missing           PriorityClass train" in said
    assert re.search(r"(\d+) guardrails, \1 out of step", said)


def test_mode_is_set(cluster: Cluster) -> None:
    assert run("mode", "test", "enforce") == "test: enforce.\n"
    assert run("mode", "test", "enforce") == "test: enforce, as before.\n"
    assert Cluster.objects.get().mode == ClusterMode.ENFORCE


def test_classes_of_a_cluster_that_has_them_stay(cluster: Cluster) -> None:
    cluster.gpu_classes.update(node_labels={})
    assert run("classes", "test") == "No GPUs that no class covers yet.\n"


def test_unknown_cluster_and_silent_cluster_are_errors_in_words(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.connection.client.BACK_OFF_S", (0.0, 0.0))
    with pytest.raises(CommandError, match="no cluster 'nowhere'"):
        run("check", "nowhere")
    run("add", "silent", "--api-url", "http://127.0.0.1:9")
    with pytest.raises(CommandError, match="Unreachable"):
        run("guardrails", "silent")


@pytest.mark.parametrize("command", [("snapshot", "c"), ("cluster", "list")])
def test_database_without_tables_is_an_error_with_a_remedy(
    command: tuple[str, str], tmp_path: Path
) -> None:
    environment = {**os.environ, "DATABASE_URL": f"sqlite:///{tmp_path / 'new.sqlite3'}"}
    done = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "manage.py migrate" in done.stderr
    assert "Traceback" not in done.stderr


def test_nodes_of_a_class_are_reserved_for_gpu_work_and_given_up_again(cluster: Cluster) -> None:
    assert run("reserve", "test", "h100") == "test: nodes with gpu=h100 take GPU work only.\n"
    assert cluster.gpu_classes.get().reserved_labels == {"gpu": "h100"}
    said = run("reserve", "test", "h100", "--nodes", "pool=train", "--nodes", "gpu=h100")
    assert said == "test: nodes with pool=train, gpu=h100 take GPU work only.\n"
    assert run("reserve", "test", "h100", "--none") == "test: other work may go there.\n"
    assert cluster.gpu_classes.get().reserved_labels == {}


@pytest.mark.parametrize("typed", ["pool='x", "=x", "a b=c", "pool=" + "x" * 64])
def test_reserve_refuses_what_is_no_label(cluster: Cluster, typed: str) -> None:
    with pytest.raises(CommandError, match="is no label of a node"):
        run("reserve", "test", "h100", "--nodes", typed)


def test_reserve_refuses_unknown_classes_and_nodes_that_nothing_tells_apart(
    cluster: Cluster,
) -> None:
    with pytest.raises(CommandError, match="no GPU class 'b200'"):
        run("reserve", "test", "b200")
    cluster.gpu_classes.update(node_labels={})
    with pytest.raises(CommandError, match="Name a label that the nodes to reserve carry"):
        run("reserve", "test", "h100")


def test_work_outside_the_queues_is_listed_with_the_line_that_labels_it(cluster: Cluster) -> None:
    cluster.queues.filter(name="research").update(namespace="default")
    kube = Client.connect(cluster)
    kube.create("/api/v1/namespaces", {"metadata": {"name": "legacy"}})
    for name, labels, space in (
        ("told", {QUEUE: "research"}, "default"),
        ("untold", {}, "default"),
        ("elsewhere", {}, "legacy"),
    ):
        kube.create(f"/apis/batch/v1/namespaces/{space}/jobs", gpu_job(name, labels))
    kube.create("/api/v1/namespaces/default/pods", gpu_pod("by-hand", 2))
    kube.create("/api/v1/namespaces/default/pods", gpu_pod("by-a-set", 3, "StatefulSet"))
    eventually(lambda: len(kube.get("/api/v1/pods")["items"]) == 5)
    kube.close()

    said = run("outside", "test")

    assert said.splitlines() == [
        "default/db: StatefulSet, 3 GPUs",
        "      → A StatefulSet cannot wait: make it a Job, a Deployment or a LeaderWorkerSet.",
        "default/by-hand: Pod, 2 GPUs",
        "      → kubectl -n default label pod by-hand weir.dev/queue=research",
        "default/untold: Job of ann, 1 GPU",
        "      → kubectl -n default label job untold weir.dev/queue=research",
        "legacy/elsewhere: Job of ann, 1 GPU",
        "      → No queue has the namespace legacy: give it one first.",
        "4 outside the queues; a label brings 2 in.",
    ]


def test_work_that_somebody_labelled_is_outside_no_more(cluster: Cluster) -> None:
    cluster.queues.filter(name="research").update(namespace="default")
    kube = Client.connect(cluster)
    kube.create(JOBS, gpu_job("untold", {}))
    eventually(lambda: len(kube.get("/api/v1/pods")["items"]) == 1)
    assert run("outside", "test").endswith("1 outside the queues; a label brings 1 in.\n")

    kube.patch(f"{JOBS}/untold", {"metadata": {"labels": {QUEUE: "research"}}})
    kube.close()

    assert run("outside", "test") == "0 outside the queues; a label brings 0 in.\n"


def test_gpus_outside_are_counted_as_those_of_pods_that_a_queue_takes(cluster: Cluster) -> None:
    pod = gpu_pod("by-hand", 2)
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    pod["spec"]["initContainers"] = [
        {"name": "beside", "image": "work", "resources": limits, "restartPolicy": "Always"}
    ]
    kube = Client.connect(cluster)
    kube.create("/api/v1/namespaces/default/pods", pod)
    kube.close()

    assert run("outside", "test").startswith("default/by-hand: Pod, 3 GPUs\n")


def gpu_job(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": {USER: "ann"}},
        "spec": {"template": {"spec": {**gpu_pod(name, 1)["spec"], "restartPolicy": "Never"}}},
    }  # fmt: skip


def gpu_pod(name: str, gpus: int, owner: str = "") -> dict[str, Any]:
    owners = [
        {"apiVersion": "apps/v1", "kind": owner, "name": "db", "uid": "u-db", "controller": True}
    ]
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "ownerReferences": owners if owner else []},
        "spec": {"containers": [{"name": "main", "image": "work", "resources": limits}]},
    }  # fmt: skip
