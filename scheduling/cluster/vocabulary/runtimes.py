"""What RuntimeClasses (node.k8s.io/v1) add to pods: what they take besides what their containers ask for
(KEP-688), and which nodes they may run on (KEP-585).

The API server writes both into each pod that is made; templates only name the class. A TrainJob has no
template: it names a training runtime (trainer.kubeflow.org), whose template names the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Json = dict[str, Any]

GROUP = "node.k8s.io"
RESOURCE = "runtimeclasses"
LIST_PATH = f"/apis/{GROUP}/v1/{RESOURCE}"
TRAINER_GROUP = "trainer.kubeflow.org"
TRAINING = {
    resource: f"/apis/{TRAINER_GROUP}/v1alpha1/{resource}"
    for resource in ("clustertrainingruntimes", "trainingruntimes")
}
"""Training runtimes: resource -> list path."""
TRAINER = "node"
"""The trainer's replicated job in every training runtime."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """``overhead`` are quantities that each pod takes, as they are written; ``selector`` are labels that its
    node has, ``tolerations`` are of taints that it may have."""

    overhead: Json = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Json, ...] = ()


Runtimes = Mapping[str, Runtime]
"""By the name of the runtime class, or the reference of a training runtime."""
NO_RUNTIMES: Runtimes = MappingProxyType({})
PLAIN = Runtime()


def read(classes: Iterable[Json]) -> dict[str, Runtime]:
    """Those ``classes`` that add something."""
    found = {
        c["metadata"]["name"]: Runtime(
            (c.get("overhead") or {}).get("podFixed") or {},
            (c.get("scheduling") or {}).get("nodeSelector") or {},
            tuple((c.get("scheduling") or {}).get("tolerations") or ()),
        )
        for c in classes
    }
    return {name: runtime for name, runtime in found.items() if runtime != PLAIN}


def with_training(found: Mapping[str, Runtime], training: Iterable[Json]) -> dict[str, Runtime]:
    """``found`` and, by its reference, what each of the ``training`` runtimes takes for its trainer."""
    named = {
        reference(one["metadata"].get("namespace", ""), one["metadata"]["name"]): class_named(one)
        for one in training
    }
    return {**found, **{ref: found[name] for ref, name in named.items() if name in found}}


def reference(namespace: str, name: str) -> str:
    """Of a training runtime, of the cluster where ``namespace`` is empty. No class is called so: the names
    of objects have no slash."""
    return f"{namespace}/{name}"


def class_named(training: Mapping[str, Any]) -> str:
    """The runtime class that a training runtime, or a patch of one, names for its trainer; else empty."""
    spec = training.get("spec") or training
    jobs = ((spec.get("template") or {}).get("spec") or {}).get("replicatedJobs") or []
    pods = (_pod_of(job) for job in jobs if job.get("name") == TRAINER)
    return next((str(pod.get("runtimeClassName") or "") for pod in pods), "")


def _pod_of(job: Mapping[str, Any]) -> Mapping[str, Any]:
    for step in ("template", "spec", "template", "spec"):
        job = job.get(step) or {}
    return job


def of(pod: Mapping[str, Any], runtimes: Runtimes) -> Runtime:
    """What the class that a pod spec names adds to it."""
    return runtimes.get(pod.get("runtimeClassName") or "", PLAIN)
