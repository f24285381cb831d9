"""A cluster that is played on Kubernetes: its own control plane, or one of a kubeconfig."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.models import Cluster, GpuClass, Queue
from scheduling.services.clusters import connection
from scheduling.services.errors import ServiceError
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from scheduling.services.workloads import submit as workloads
from scheduling.services.workloads.manifest import build_job_manifest
from tests.scheduling.kube import eventually, policy
from workshop.demo.cluster.furnish import furnish
from workshop.demo.cluster.real import RealCluster
from workshop.demo.work.arrivals import simulated
from workshop.testbed.control_plane.plane import ControlPlane
from workshop.testbed.kubelets import Machine

LONG_S = 90.0


@pytest.fixture
def cluster(db: None) -> Iterator[Cluster]:
    cluster = policy("enforce", "", "research", nominal_gpus=8)
    Queue.objects.filter(name="research").update(namespace="lab", access_group="lab-people")
    yield cluster
    workers.close_all()


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are as new as their clusters: a start has other ports, keys and tokens."""
    monkeypatch.setattr(connection, "_clients", {})


def play(cluster: Cluster, folder: Path, context: str = "") -> RealCluster:
    played = RealCluster(
        cluster, folder=folder, pace=3600, start=datetime.now(UTC), context=context
    )
    played.start(print)
    return played


def submit(cluster: Cluster, name: str) -> None:
    """Two hours of work for four GPUs, in a person's name; new rights take a moment to be known."""
    manifest = build_job_manifest(
        name=name,
        queue="research",
        namespace="lab",
        image="work",
        gpu_classes=list(GpuClass.objects.all()),
        gpus_per_pod=4,
        pods_min=1,
    )
    body = simulated(manifest, run_s=7200, checkpoint_s=None)
    eventually(lambda: _taken(cluster, body), LONG_S)


def _taken(cluster: Cluster, body: dict[str, Any]) -> bool:
    try:
        workloads.submit(cluster, manifest=body, user="ann")
    except ServiceError as error:
        if error.code != "forbidden":
            raise
        return False
    return True


def completed(cluster: Cluster, name: str) -> bool:
    run_cycle(cluster.pk)
    client = Client.connect(cluster)
    status = client.get(f"/apis/batch/v1/namespaces/lab/jobs/{name}")["status"]
    client.close()
    return any(c["type"] == "Complete" for c in status.get("conditions") or ())


def lab(cluster: Cluster) -> None:
    node = Machine("n1", "nvidia.com/gpu", 8, 64, 256, labels={"gpu": "h100"})
    furnish(cluster, machines=[node])


@pytest.mark.real
def test_work_is_submitted_admitted_run_and_kept_over_a_restart(
    cluster: Cluster, tmp_path: Path
) -> None:
    played = play(cluster, tmp_path)
    try:
        lab(cluster)
        submit(cluster, "first")
        eventually(lambda: completed(cluster, "first"), LONG_S)
    finally:
        workers.close_all()
        played.stop()

    connection._clients.clear()
    played = play(cluster, tmp_path)
    try:
        assert completed(cluster, "first")
        submit(cluster, "second")
        eventually(lambda: completed(cluster, "second"), LONG_S)
    finally:
        workers.close_all()
        played.stop()


@pytest.mark.real
def test_cluster_of_a_kubeconfig_is_played_and_left_running(
    cluster: Cluster, tmp_path: Path, kubernetes: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = kubernetes.access
    monkeypatch.setenv("KUBECONFIG", access.kubeconfig)
    # Its own kubelets would act for the same nodes, only slower.
    kubernetes.stop_part("kubelets")
    played = play(cluster, tmp_path, access.context)
    try:
        lab(cluster)
        submit(cluster, "first")
        eventually(lambda: completed(cluster, "first"), LONG_S)
        assert played.kubectl == f"--kubeconfig {access.kubeconfig} --context {access.context}"
    finally:
        workers.close_all()
        played.stop()
        kubernetes.start_part("kubelets")
    assert access.is_answered


def test_missing_programs_are_a_reason_to_read(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "nothing"))
    with pytest.raises(ServiceError, match="KUBEBUILDER_ASSETS"):
        play(cluster, tmp_path)
