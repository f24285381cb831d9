"""A small cluster for tests: rows, an embedded API server over HTTP, and the verbs people use on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.reflector import version_of
from scheduling.models import Cluster, GpuClass, PriorityClass, Queue, Quota, Sharing, Workload
from scheduling.services.cycle.run import CycleResult
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from scheduling.services.workloads.manifest import build_job_manifest
from workshop.testbed.kubelets import SIMULATED
from workshop.testbed.server import EmbeddedServer

Json = dict[str, Any]

JOBS = "/apis/batch/v1/namespaces/default/jobs"


def node(name: str, gpus: int = 8, **labels: str) -> Json:
    resources = {"nvidia.com/gpu": str(gpus), "cpu": "96", "memory": "512Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "gpu": "h100", SIMULATED: "true", **labels},
        },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def add_node(client: Client, manifest: Json) -> None:
    """Create a node that takes work at once: a real API server taints a new one until a controller has seen
    it ready."""
    made = client.create("/api/v1/nodes", manifest)
    if made.get("spec", {}).get("taints"):
        client.patch(f"/api/v1/nodes/{made['metadata']['name']}", {"spec": {"taints": None}})


COMES_S = 60.0
"""What comes is seen at once; that it does not is believed this late, on the slowest machine."""


def eventually(
    condition: Callable[[], Any], within_s: float = COMES_S, seen: Callable[[], str] = lambda: ""
) -> Any:
    """The first truthy value of ``condition``; fails after ``within_s`` and tells what is ``seen`` then."""
    until, pause_s = time.monotonic() + within_s, 0.01
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < until, f"did not come true in time\n{seen()}"
        time.sleep(pause_s)
        # Whoever is asked shares the machine with whoever asks.
        pause_s = min(1.2 * pause_s, 0.1)


def policy(
    mode: str, url: str, *queues: str, nominal_gpus: int = 16, name: str = "test"
) -> Cluster:
    """A cluster row with class ``h100``, a default priority class, and leaf queues below the root."""
    fair = Sharing.FAIR_SHARE
    cluster = Cluster.objects.create(name=name, mode=mode, api_url=url, sharing=fair)
    gpu_class = GpuClass.objects.create(cluster=cluster, name="h100", node_labels={"gpu": "h100"})
    PriorityClass.objects.get_or_create(name="train", value=50, is_default=True)
    root = Queue.objects.create(cluster=cluster, name="root")
    for leaf in queues:
        queue = Queue.objects.create(cluster=cluster, name=leaf, parent=root, namespace="default")
        Quota.objects.create(
            queue=queue,
            gpu_class=gpu_class,
            nominal_gpus=nominal_gpus * 1000,
            effective_from=datetime.now(UTC) - timedelta(days=1),
        )
    return cluster


@dataclass
class World:
    """The row, the server behind it, and a client to look at it with."""

    cluster: Cluster
    server: EmbeddedServer
    kube: Client
    writes: list[tuple[str, str]] = field(default_factory=list)

    def job(self, name: str, *, gpus: int = 1, pods: int = 1, **more: Any) -> Json:
        """Create a suspended Job, as ``kubectl apply`` would."""
        return self.kube.create(JOBS, self.manifest(name, gpus=gpus, pods=pods, **more))

    def manifest(
        self,
        name: str,
        *,
        gpus: int = 1,
        pods: int = 1,
        queue: str = "research",
        run_s: float | None = None,
        grace_s: int = 0,
        suspend: bool = True,
        **more: Any,
    ) -> Json:
        manifest = build_job_manifest(
            name=name,
            queue=queue,
            namespace="default",
            image="work",
            gpu_classes=[GpuClass.objects.filter(cluster=self.cluster).order_by("pk")[0]],
            gpus_per_pod=gpus,
            pods_min=pods,
            **more,
        )
        manifest["spec"]["suspend"] = suspend
        template = manifest["spec"]["template"]
        template["spec"]["terminationGracePeriodSeconds"] = grace_s
        if run_s is not None:
            template["metadata"] = {"annotations": {"weir.dev/run-seconds": str(run_s)}}
        return manifest

    def edit(self, name: str, patch: Json) -> Json:
        """What ``kubectl patch`` does."""
        return self.kube.patch(f"{JOBS}/{name}", patch)

    def read(self, name: str) -> Json:
        return self.kube.get(f"{JOBS}/{name}")

    def notes(self, name: str) -> dict[str, str]:
        return self.read(name)["metadata"].get("annotations") or {}

    def events(self, name: str) -> list[str]:
        """Reasons of Weir's own Events on Job ``name``, oldest first."""
        found = self.kube.get("/api/v1/namespaces/default/events")["items"]
        mine = [e for e in found if e["source"].get("component") == "weir"]
        mine.sort(key=lambda e: int(e["metadata"]["resourceVersion"]))
        return [e["reason"] for e in mine if e["involvedObject"]["name"] == name]

    def row(self, name: str) -> Workload:
        return Workload.objects.get(cluster=self.cluster, name=name)

    def states(self, name: str) -> list[str]:
        return [t.to_state for t in self.row(name).transitions.order_by("id")]

    def cycle(self) -> CycleResult:
        """One cycle, with what it starts, on a mirror that has seen everything that happened so far."""
        self.catch_up()
        result = run_cycle(self.cluster.pk, trigger="test")
        if worker := workers._turns.get(self.cluster.pk):
            eventually(lambda: not worker.link.enforcer.starts, 30)
        return result

    def catch_up(self) -> None:
        """Wait until the mirror (if there is one) holds what the server holds."""
        worker = workers._turns.get(self.cluster.pk)
        if worker is None:
            return
        eventually(lambda: self._arrives(worker, self._versions(worker)))

    def _arrives(self, worker: workers.ClusterTurn, served: set[int]) -> bool:
        """Whether the mirror comes to hold what was ``served`` soon; else the server has gone on since. To
        look into the mirror is cheap; to list everything is most of what a server of the tests computes."""
        until = time.monotonic() + 0.2
        while self._mirrored(worker) != served:
            if time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True

    def cycles_until(self, condition: Callable[[], Any], within_s: float = COMES_S) -> Any:
        """The first truthy value of ``condition`` after a cycle."""

        def attempt() -> Any:
            self.cycle()
            return condition()

        return eventually(attempt, within_s, self._standing)

    def _standing(self) -> str:
        """What there is to see of why something does not happen."""
        rows = Workload.objects.filter(cluster=self.cluster).order_by("pk")
        said = [f"{r.name}: {r.state} {r.reason} {r.sentence} {r.placement}" for r in rows]
        nodes = self.kube.get("/api/v1/nodes")["items"]
        pods = self.kube.get("/api/v1/pods")["items"]
        found = [f"{n['metadata']['name']}: {n['spec']} {n['status']['conditions']}" for n in nodes]
        left = [f"{p['metadata']['name']}: {p['spec'].get('nodeName')} {p['status']}" for p in pods]
        return "\n".join((*said, *found, *left))

    def _versions(self, worker: workers.ClusterTurn) -> set[int]:
        served = [r for r in worker.link.mirror._reflectors.values() if r.served]
        lists = (self.kube.get(r._path, **r._chosen)["items"] for r in served)
        return {version_of(o) for found in lists for o in found}

    @staticmethod
    def _mirrored(worker: workers.ClusterTurn) -> set[int]:
        reflectors = worker.link.mirror._reflectors.values()
        aside = {version for r in reflectors for version in r._aside.values()}
        return aside | {version_of(o) for r in reflectors for o in r.objects()}
