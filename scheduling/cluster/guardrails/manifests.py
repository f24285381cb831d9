"""What should stand on the cluster, as manifests: a pure function of the policy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduling.cluster import devices, labels
from scheduling.cluster.guardrails import admission, marks

Json = dict[str, Any]

NAME = "weir"
"""Of the one ResourceQuota and RoleBinding in each namespace."""
MEMBER_ROLE = "weir-member"
"""The ClusterRole that team groups are bound to; docker/kubernetes/ installs it."""


@dataclass(frozen=True, slots=True)
class PriorityRail:
    name: str
    value: int


@dataclass(frozen=True, slots=True)
class NamespaceRail:
    """A namespace in which queues' work is created.

    ``hard`` bounds GPUs by resource name (whole devices); a resource without a bound is left out.
    ``groups`` are the cluster's names of the teams that work there.
    """

    name: str
    queues: tuple[str, ...]
    hard: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rails:
    """All that the guardrails are made of."""

    priorities: tuple[PriorityRail, ...] = ()
    namespaces: tuple[NamespaceRail, ...] = ()
    gpu_resources: tuple[str, ...] = ()


def manifests(rails: Rails) -> list[Json]:
    """The objects in the order in which they are made: what others need comes first."""
    found = [_namespace(rail) for rail in rails.namespaces]
    found += [_priority_class(rail) for rail in rails.priorities]
    for rail in rails.namespaces:
        if rail.hard:
            found.append(_quota(rail))
        if rail.groups:
            found.append(_role_binding(rail))
    if rails.gpu_resources and rails.namespaces:
        found += [*admission.policies(rails.gpu_resources), *marks.policy()]
    return [_stamped(manifest) for manifest in found]


def _namespace(rail: NamespaceRail) -> Json:
    notes = {labels.QUEUES: ",".join(rail.queues)}
    return _object("v1", "Namespace", rail.name, annotations=notes)


def _priority_class(rail: PriorityRail) -> Json:
    body = _object("scheduling.k8s.io/v1", "PriorityClass", rail.name)
    # Who gives way to whom is Weir's decision; kube-scheduler must not take it once more.
    return body | {"value": rail.value, "preemptionPolicy": "Never"}


def _quota(rail: NamespaceRail) -> Json:
    hard = {_bounded(name): str(count) for name, count in sorted(rail.hard.items())}
    return _object("v1", "ResourceQuota", NAME, rail.name) | {"spec": {"hard": hard}}


def _bounded(resource_name: str) -> str:
    """What a ResourceQuota calls a resource; devices of a class are counted by their claims."""
    if resource_name.startswith(devices.PREFIX):
        return f"{resource_name.removeprefix(devices.PREFIX)}.deviceclass.resource.k8s.io/devices"
    return f"requests.{resource_name}"


def _role_binding(rail: NamespaceRail) -> Json:
    api = "rbac.authorization.k8s.io"
    subjects = [{"kind": "Group", "apiGroup": api, "name": name} for name in sorted(rail.groups)]
    role = {"apiGroup": api, "kind": "ClusterRole", "name": MEMBER_ROLE}
    body = _object(f"{api}/v1", "RoleBinding", NAME, rail.name)
    return body | {"roleRef": role, "subjects": subjects}


def _object(
    api_version: str,
    kind: str,
    name: str,
    namespace: str = "",
    annotations: Mapping[str, str] | None = None,
) -> Json:
    metadata: Json = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _stamped(manifest: Json) -> Json:
    """``manifest`` with the mark of ours and a digest, by which an older version of it is told."""
    text = json.dumps(manifest, sort_keys=True).encode()
    metadata = manifest["metadata"]
    metadata["labels"] = {**metadata.get("labels", {}), labels.MANAGED: "true"}
    metadata["annotations"] = {
        **metadata.get("annotations", {}),
        labels.APPLIED: hashlib.sha256(text).hexdigest()[:12],
    }
    return manifest


def key_of(manifest: Json) -> tuple[str, str, str]:
    """(kind, namespace, name)"""
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def keys_of(found: Sequence[Json]) -> set[tuple[str, str, str]]:
    return {key_of(manifest) for manifest in found}
