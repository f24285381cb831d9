"""The kubectl of this machine against the embedded server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workshop.testbed.server import Clock, EmbeddedServer, kubeconfig_yaml

from ..contract.api import Api, eventually, job

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not on this machine's PATH"
)

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """A server with one node, whose time runs fast."""
    with EmbeddedServer(clock=Clock(speed=20)) as server:
        ready = {
            "capacity": {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        Api(server.url).create("nodes", {"metadata": {"name": "n1"}, "status": ready})
        yield server


@pytest.fixture(scope="module")
def kubectl(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Run kubectl; returns what it prints, fails if it fails."""
    home: Path = tmp_path_factory.mktemp("home")
    (home / "config").write_text(kubeconfig_yaml(server.url))
    environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(home / "config")}

    def run(*arguments: str, stdin: object = None) -> str:
        done = subprocess.run(
            ["kubectl", *arguments],
            input=json.dumps(stdin) if stdin else None,
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def _states(kubectl: Kubectl) -> dict[str, str]:
    rows = [line.split() for line in kubectl("get", "jobs", "-A", "--no-headers").splitlines()]
    return {row[1]: row[2] for row in rows}


def test_job_lives_through_kubectl(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=job("train", suspend=True))
    eventually(lambda: _states(kubectl).get("train") == "Suspended")
    assert "Suspend:          true" in kubectl("describe", "job", "train")
    kubectl("patch", "job", "train", "-p", '{"spec":{"suspend":false}}')
    eventually(lambda: "Running" in kubectl("get", "pods"))
    described = kubectl("describe", "job", "train")
    assert "1 Active (1 Ready)" in described
    assert "SuccessfulCreate" in described
    kubectl("delete", "job", "train")
    eventually(lambda: not kubectl("get", "pods"))


def test_table_shows_what_a_real_server_shows(kubectl: Kubectl) -> None:
    kubectl("create", "job", "hello", "--image=busybox", "--", "sleep", "9")
    heads = kubectl("get", "jobs").splitlines()[0].split()
    assert heads == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert "n1" in kubectl("get", "nodes")
    assert "SuccessfulCreate" in kubectl("get", "events")
    labels = kubectl("get", "nodes", "--show-labels")
    assert labels.splitlines()[0].split()[-1] == "LABELS"
    kubectl("delete", "job", "hello")


def test_apply_changes_what_the_file_changes(kubectl: Kubectl) -> None:
    body = job("applied", suspend=True)
    body["metadata"]["labels"] = {"weir.dev/queue": "vision", "old": "yes"}
    kubectl("apply", "-f", "-", stdin=body)
    body["metadata"]["labels"] = {"weir.dev/queue": "speech"}
    assert "configured" in kubectl("apply", "-f", "-", stdin=body)
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=body)
    labels = json.loads(kubectl("get", "job", "applied", "-o", "json"))["metadata"]["labels"]
    assert labels == {"weir.dev/queue": "speech"}
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=body)
    kubectl("delete", "job", "applied")


def test_generators_that_speak_protobuf_are_understood(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "team")
    kubectl("create", "quota", "cap", "--hard=cpu=4,pods=3", "-n", "team")
    kubectl("create", "priorityclass", "train", "--value=50")
    quota = json.loads(kubectl("get", "quota", "cap", "-n", "team", "-o", "json"))
    assert quota["spec"]["hard"] == {"cpu": "4", "pods": "3"}
    assert "50" in kubectl("get", "priorityclass", "train")
    kubectl("delete", "namespace", "team")


def test_labels_annotations_and_waiting(kubectl: Kubectl) -> None:
    body = job("short", seconds=5)
    kubectl("create", "-f", "-", stdin=body)
    kubectl("label", "job", "short", "team=vision")
    kubectl("annotate", "job", "short", "weir.dev/note=hi")
    kubectl("wait", "--for=condition=Complete", "job/short", "--timeout=20s")
    assert "short" in kubectl("get", "jobs", "-l", "team in (vision)")
    kubectl("delete", "jobs", "--all")


def test_node_is_drained_by_evictions(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=job("drained"))
    eventually(lambda: "Running" in kubectl("get", "pods"))
    assert "drained" in kubectl("drain", "n1", "--timeout=20s")
    assert "SchedulingDisabled" in kubectl("get", "nodes")
    kubectl("uncordon", "n1")
    kubectl("delete", "job", "drained")
