"""Whole programs on a real control plane: a worker process, people with kubectl's means, and SIGKILL."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from scheduling.cluster.connection.client import Client, configuration_from
from tests.scheduling.killing import LEASE
from tests.scheduling.kube import JOBS, eventually
from workshop.testbed.control_plane.plane import ControlPlane

pytestmark = pytest.mark.real

PROGRAM = Path(__file__).with_name("worker_process.py")
LIMIT_GPUS = 16
RAN_S = 300.0
"""A killed worker's lease runs out before the next one takes it; a loaded machine needs minutes."""


@pytest.fixture
def client(kubernetes: ControlPlane) -> Iterator[Client]:
    client = Client(configuration_from(kubernetes.access.kubeconfig))
    yield client
    client.close()


@contextmanager
def worker(kubernetes: ControlPlane, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process that has begun; killed at the end without warning."""
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{folder / 'weir.sqlite3'}",
        "WEIR_BROKER_URL": f"folder://{folder / 'broker'}",
    }
    with (folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), kubernetes.access.kubeconfig],
            cwd=settings.BASE_DIR, env=environment, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", (folder / "worker.log").read_text()
            yield process
        finally:
            process.kill()
            process.wait()


def job(name: str, queue: str) -> dict[str, Any]:
    container = {"name": "main", "image": "work", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
    template = {
        "metadata": {"annotations": {"weir.dev/run-seconds": "2"}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"weir.dev/queue": queue}},
        "spec": {"suspend": True, "backoffLimit": 0, "template": template},
    }


def ended(client: Client) -> list[str]:
    """Names of Jobs that are complete; fails if more is admitted than there is."""
    jobs = client.get(JOBS)["items"]
    kinds = {j["metadata"]["name"]: _conditions(j) for j in jobs}
    assert not [name for name, shown in kinds.items() if "Failed" in shown]
    done = [name for name, shown in kinds.items() if "Complete" in shown]
    admitted = [j for j in jobs if not j["spec"]["suspend"] and j["metadata"]["name"] not in done]
    assert 4 * len(admitted) <= LIMIT_GPUS
    return done


def _conditions(body: dict[str, Any]) -> set[str]:
    return {c["type"] for c in body["status"].get("conditions") or () if c["status"] == "True"}


def test_workers_that_are_killed_again_and_again_bring_everything_to_its_end(
    kubernetes: ControlPlane, client: Client, tmp_path: Path
) -> None:
    names = [f"{queue}-{i}" for queue in ("research", "products") for i in range(5)]
    for name in names:
        client.create(JOBS, job(name, name.partition("-")[0]))
    for wanted in (1, 4):
        with worker(kubernetes, tmp_path):
            eventually(lambda wanted=wanted: len(ended(client)) >= wanted, RAN_S)
    with worker(kubernetes, tmp_path):
        eventually(lambda: sorted(ended(client)) == sorted(names), RAN_S)


def test_two_workers_at_once_of_which_the_writing_one_is_frozen_in_mid_work(
    kubernetes: ControlPlane, client: Client, tmp_path: Path
) -> None:
    """Thawed after its lease ran out, it finds another at work and leaves it alone."""
    names = [f"{queue}-{i}" for queue in ("research", "products") for i in range(6)]
    for name in names:
        client.create(JOBS, job(name, name.partition("-")[0]))
    with worker(kubernetes, tmp_path) as first:
        eventually(lambda: ended(client), RAN_S)
        with worker(kubernetes, tmp_path):
            before = holder(client)
            freeze(first, tmp_path)
            names.append("research-late")
            client.create(JOBS, job("research-late", "research"))
            eventually(lambda: "research-late" in ended(client), RAN_S)
            assert holder(client) != before
            first.send_signal(signal.SIGCONT)
            eventually(lambda: sorted(ended(client)) == sorted(names), RAN_S)
            assert holder(client) != before


def freeze(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Between two transactions: in one it would keep SQLite's only lock, where a server's are of rows."""
    while True:
        process.send_signal(signal.SIGSTOP)
        with closing(sqlite3.connect(folder / "weir.sqlite3", timeout=0)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                process.send_signal(signal.SIGCONT)
                time.sleep(0.05)
            else:
                return


def holder(client: Client) -> str:
    return str(client.get(LEASE)["spec"].get("holderIdentity") or "")
