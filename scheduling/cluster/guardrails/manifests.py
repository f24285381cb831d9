"""What should stand on the cluster, as manifests: a pure function of the policy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduling.cluster.guardrails import admission, marks, personas, reserve, subresources, users
from scheduling.cluster.guardrails.personas import Parameters
from scheduling.cluster.vocabulary import devices, labels, people
from scheduling.models.queues import SYSTEM_NAMESPACE

Json = dict[str, Any]

NAME = "weir"
"""Of the one ResourceQuota and LimitRange in each namespace, and of the RoleBinding of its people."""
POD_SECURITY = "pod-security.kubernetes.io"
STATED = {"cpu": "10m", "memory": "32Mi"}
"""Requests of a container that states none: a quota on CPU refuses those. So small that a gang which was
planned without them still fits where it was planned."""
RBAC = "rbac.authorization.k8s.io"
PORTAL, PORTAL_ROLE = "weir-portal", "weir-portal-work"
"""The portal's account, and the ClusterRole that it is bound to in each namespace."""
ENGINE, ENGINE_ROLE = "weir-engine", "weir-engine-work"
"""The engine's account, the RoleBinding by which it has rights in a namespace, and their ClusterRole."""
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
    ``cpus`` (milli-CPU), ``memory_mib`` and ``pods`` bound what all its pods request; None is unbounded.
    ``pod_security`` is a level of the Pod Security Standards. ``groups`` are the cluster's names of the
    teams that work there, ``parameters`` who of them may have what run; None where no team is bound to any
    of its queues.
    """

    name: str
    queues: tuple[str, ...]
    hard: Mapping[str, int] = field(default_factory=dict)
    cpus: int | None = None
    memory_mib: int | None = None
    pods: int | None = None
    pod_security: str = "baseline"
    groups: tuple[str, ...] = ()
    parameters: Parameters | None = None


@dataclass(frozen=True, slots=True)
class Rails:
    """All that the guardrails are made of."""

    priorities: tuple[PriorityRail, ...] = ()
    namespaces: tuple[NamespaceRail, ...] = ()
    gpu_resources: tuple[str, ...] = ()
    reserved: tuple[Mapping[str, str], ...] = ()
    """Labels of nodes that take GPU work only."""
    accounts: str = SYSTEM_NAMESPACE
    """The namespace in which Weir's own accounts are."""


def manifests(rails: Rails) -> list[Json]:
    """The objects in the order in which they are made: what others need comes first."""
    found = [_namespace(rail) for rail in rails.namespaces]
    for rail in rails.namespaces:
        # Without the first the engine may write nothing else there.
        found += [_engine(rail, rails.accounts), _members(rail), _portal(rail, rails.accounts)]
    found += [_priority_class(rail) for rail in rails.priorities]
    for rail in rails.namespaces:
        if hard := bounds_of(rail):
            found.append(_object("v1", "ResourceQuota", NAME, rail.name) | {"spec": {"hard": hard}})
            found.append(_limit_range(rail))
    if rails.namespaces:
        terms = admission.Terms(
            gpu_resources=rails.gpu_resources,
            priorities=[rail.name for rail in rails.priorities],
            namespaces=[rail.name for rail in rails.namespaces],
        )
        found += users.policies(terms.namespaces)
        found += [*admission.policies(terms), *subresources.policies(terms), *marks.policy()]
        found += _on_personas(rails, terms)
        found += reserve.policy(rails.reserved, rails.gpu_resources)
    return [_stamped(manifest) for manifest in found]


def policy_names() -> dict[str, tuple[str, ...]]:
    """Of each kind of admission policy and binding, the names of all that Weir may ever make."""
    somewhere = NamespaceRail("x", (), parameters=Parameters(default_priority="", queues={}))
    found: dict[str, tuple[str, ...]] = {}
    for body in manifests(Rails(namespaces=(somewhere,), reserved=({"x": "x"},))):
        if "AdmissionPolicy" in body["kind"]:
            found[body["kind"]] = (*found.get(body["kind"], ()), body["metadata"]["name"])
    return found


def _on_personas(rails: Rails, terms: admission.Terms) -> list[Json]:
    """Parameters come before what reads them, and after what keeps others from writing them."""
    parameters = [_parameters(rail) for rail in rails.namespaces if rail.parameters is not None]
    return [*personas.protection(terms.namespaces), *parameters, *personas.policies(terms)]


def _parameters(rail: NamespaceRail) -> Json:
    data = personas.data_of(rail.parameters) if rail.parameters else {}
    return _object("v1", "ConfigMap", personas.NAME, rail.name) | {"data": data}


def _namespace(rail: NamespaceRail) -> Json:
    notes = {labels.QUEUES: ",".join(rail.queues)}
    body = _object("v1", "Namespace", rail.name, annotations=notes)
    # Templates are only warned of, so that whoever sends one hears of it before its pods are refused.
    body["metadata"]["labels"] = {
        f"{POD_SECURITY}/{mode}{what}": said
        for mode in ("enforce", "warn", "audit")
        for what, said in (("", rail.pod_security), ("-version", "latest"))
    }
    return body


def _priority_class(rail: PriorityRail) -> Json:
    body = _object("scheduling.k8s.io/v1", "PriorityClass", rail.name)
    # Preemption is Weir's decision; kube-scheduler must not take it once more.
    return body | {"value": rail.value, "preemptionPolicy": "Never"}


def bounds_of(rail: NamespaceRail) -> dict[str, str]:
    """What a ResourceQuota of the namespace bounds, as Kubernetes names and writes it."""
    hard = {_bounded(name): str(count) for name, count in sorted(rail.hard.items())}
    if rail.cpus is not None:
        hard["requests.cpu"] = f"{rail.cpus}m"
    if rail.memory_mib is not None:
        hard["requests.memory"] = f"{rail.memory_mib}Mi"
    if rail.pods is not None:
        hard["pods"] = str(rail.pods)
    return hard


def _limit_range(rail: NamespaceRail) -> Json:
    limits = [{"type": "Container", "defaultRequest": dict(STATED)}]
    return _object("v1", "LimitRange", NAME, rail.name) | {"spec": {"limits": limits}}


def _bounded(resource_name: str) -> str:
    """What a ResourceQuota calls a resource; devices of a class are counted by their claims."""
    if resource_name.startswith(devices.PREFIX):
        return f"{resource_name.removeprefix(devices.PREFIX)}.deviceclass.resource.k8s.io/devices"
    return f"requests.{resource_name}"


def _members(rail: NamespaceRail) -> Json:
    """Teams, by the cluster's own groups, and whoever the portal acts for."""
    names = [*sorted(rail.groups), people.GROUP]
    subjects = [{"kind": "Group", "apiGroup": RBAC, "name": name} for name in names]
    return _role_binding(NAME, MEMBER_ROLE, rail.name, subjects)


def _engine(rail: NamespaceRail, accounts: str) -> Json:
    """What the engine may write, here alone."""
    account = {"kind": "ServiceAccount", "name": ENGINE, "namespace": accounts}
    return _role_binding(ENGINE, ENGINE_ROLE, rail.name, [account])


def _portal(rail: NamespaceRail, accounts: str) -> Json:
    """What the portal may do in people's names, here alone."""
    account = {"kind": "ServiceAccount", "name": PORTAL, "namespace": accounts}
    return _role_binding(PORTAL, PORTAL_ROLE, rail.name, [account])


def _role_binding(name: str, role: str, namespace: str, subjects: list[Json]) -> Json:
    body = _object(f"{RBAC}/v1", "RoleBinding", name, namespace)
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    return body | {"roleRef": reference, "subjects": subjects}


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
