"""Nodes to simulate, and the objects that stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SIMULATED = "weir.dev/simulated"
"""Label of nodes that have no kubelet of their own."""
SPEED = "weir.dev/simulated-speed"
"""Annotation of a simulated node: as ``Machine.speed``; 1 where it is left out."""
STOPPED = "weir.dev/kubelet-stopped"
"""Annotation of a simulated node whose kubelet is to be silent, as if the machine had died."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A node to simulate: ``gpus`` of the extended resource ``resource_name``, and ``others``."""

    name: str
    resource_name: str
    gpus: int
    cpus: int
    memory_gib: int
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    others: Mapping[str, int] = field(default_factory=dict)
    """More extended resources by name, such as MIG profiles."""
    speed: float = 1.0
    """How many times sooner work ends on it than it is annotated."""


def node_manifest(machine: Machine) -> Json:
    """The v1 Node of ``machine``, as its kubelet would have registered it."""
    resources = {
        machine.resource_name: str(machine.gpus),
        **{name: str(number) for name, number in machine.others.items()},
        "cpu": str(machine.cpus),
        "memory": f"{machine.memory_gib}Gi",
        "pods": "110",
    }
    labels = {"kubernetes.io/hostname": machine.name, SIMULATED: "true", **machine.labels}
    metadata: Json = {"name": machine.name, "labels": labels}
    notes = {} if machine.ready else {STOPPED: "true"}
    if machine.speed != 1:
        notes[SPEED] = f"{machine.speed:g}"
    if notes:
        metadata["annotations"] = notes
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [ready_condition(ready=machine.ready)],
        },
    }


def ready_condition(*, ready: bool, moment: str | None = None) -> Json:
    """The condition that decides whether pods may come; ``moment`` is when it changed."""
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "KubeletReady" if ready else "KubeletNotReady",
    }
    if moment:
        condition |= {"lastTransitionTime": moment, "lastHeartbeatTime": moment}
    return condition


def is_simulated(node: Json) -> bool:
    """Whether a kubelet of ours has to act for ``node``."""
    metadata = node["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return labels.get(SIMULATED) == "true" and STOPPED not in annotations
