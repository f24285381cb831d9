"""A cluster with the objects that Weir keeps on it, and what is asked of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scheduling.cluster.connection.client import InvalidError
from scheduling.models import Cluster, ClusterMode, Guardrail
from scheduling.services.clusters.guardrails import GuardrailPass
from tests.scheduling.kube import World
from tests.scheduling.operators import adapter_of

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODS = "/api/v1/pods"
Pass = Callable[[], GuardrailPass]


@dataclass
class Lab(World):
    """``research`` works in a namespace of its own, at most 12 GPUs; its group is ``lab-people``.

    Names are new for each test: on a real API server the objects of one outlive it. Those of tests that make
    a pass there are the same, and what was in the namespace goes.
    """

    namespace: str = field(default_factory=lambda: f"lab-{uuid.uuid4().hex[:8]}")
    priority: str = field(default_factory=lambda: f"train-{uuid.uuid4().hex[:8]}")

    @property
    def home(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    @property
    def quota(self) -> str:
        return f"{self.home}/resourcequotas/weir"

    @property
    def limit_range(self) -> str:
        return f"{self.home}/limitranges/weir"

    def hard(self) -> Any:
        return self.kube.get(self.quota)["spec"]["hard"]

    def hard_gpus(self) -> Any:
        """What the quota bounds of GPUs and of what is nobody's but others'."""
        own = ("requests.cpu", "requests.memory", "pods")
        return {name: amount for name, amount in self.hard().items() if name not in own}

    @property
    def binding(self) -> str:
        roles = "/apis/rbac.authorization.k8s.io/v1"
        return f"{roles}/namespaces/{self.namespace}/rolebindings/weir"

    @property
    def priority_class(self) -> str:
        return f"{CLASSES}/{self.priority}"


def standing(kind: str) -> Guardrail:
    return Guardrail.objects.get(kind=kind)


def observe() -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)


def job(world: Lab, *, queue: str = "research", gpus: int = 1, suspend: bool = True) -> Any:
    body = world.manifest("w", gpus=gpus or 1, queue=queue, suspend=suspend)
    body["metadata"]["namespace"] = world.namespace
    if not queue:
        body["metadata"]["labels"].pop("weir.dev/queue")
    if not gpus:
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    return body


def refusal(world: World, body: Any, path: str = "") -> str:
    """The refusal of ``body``, which is not kept; empty when it would be."""
    kind, namespace = body["kind"], body["metadata"]["namespace"]
    if kind == "Pod":
        path = f"/api/v1/namespaces/{namespace}/pods"
    path = path or adapter_of(kind).path(namespace, "")
    try:
        world.kube.request("POST", path, query={"dryRun": "All"}, body=body)
    except InvalidError as refused:
        return refused.message
    return ""
