"""What Weir asks of a cluster's RBAC: every resource it touches, with the verbs and the reason.

The manifests in docker/kubernetes/ grant exactly this, and tests hold both to what the code does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduling.cluster.adapters import ADAPTERS, Adapter
from scheduling.cluster.guardrails import callers, personas
from scheduling.cluster.guardrails.manifests import (
    ENGINE,
    ENGINE_ROLE,
    MEMBER_ROLE,
    NAME,
    PORTAL,
    PORTAL_ROLE,
    RBAC,
    policy_names,
)
from scheduling.cluster.guardrails.reconcile import KINDS, GuardrailKind
from scheduling.cluster.vocabulary import devices, limit_ranges, people, runtimes, volumes
from scheduling.models.queues import SYSTEM_NAMESPACE

READ = ("list", "watch")
AS_PERSON = "impersonate:user-info"
ACTS = ("get", "list", "create", "patch", "delete")
"""What the portal does in people's names."""
WHY = {
    "persistentvolumes": "volumes of work can be used on",
    "persistentvolumeclaims": "claims of work are bound to",
    "storageclasses": "volumes that are made with pods may be on",
}
OPERATORS = "weir-operators"
"""The ClusterRoleBinding that names the accounts of operators."""


@dataclass(frozen=True, slots=True)
class Need:
    """Verbs on a resource; in ``namespace`` alone, or on the objects ``names`` alone, where given."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    namespace: str = ""
    names: tuple[str, ...] = ()

    @property
    def qualified(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


def resource_of(list_path: str) -> tuple[str, str]:
    """(group, resource) of a list path such as ``/apis/batch/v1/jobs``."""
    root, *rest = list_path.strip("/").split("/")
    return ("", rest[-1]) if root == "api" else (rest[0], rest[-1])


def observing() -> Iterator[Need]:
    """What observe mode needs."""
    yield Need("", "nodes", READ, "to see the GPUs there are")
    yield Need("", "pods", READ, "to see who holds them")
    for resource in devices.RESOURCES:
        yield Need("resource.k8s.io", resource, READ, "to count devices and claims on them")
    why = "to count what runtime classes add to pods"
    yield Need(runtimes.GROUP, runtimes.RESOURCE, READ, why)
    for resource in runtimes.TRAINING:
        why = "to see which runtime class a training runtime names"
        yield Need(runtimes.TRAINER_GROUP, resource, READ, why)
    for resource, path in volumes.LIST_PATHS.items():
        yield Need(*resource_of(path), READ, f"to see which nodes the {WHY[resource]}")
    why = "to count what pods ask for where their authors say nothing"
    yield Need("", limit_ranges.RESOURCE, READ, why)
    for adapter in ADAPTERS:
        yield Need(
            *resource_of(adapter.list_path), READ, f"to see queued work of kind {adapter.kind}"
        )
    yield Need("", "events", READ, "to hear why pods of work that is let in are refused")
    for kind in KINDS:
        why = "to compare the guardrails"
        yield Need(*resource_of(kind.list_path), ("get", "list"), why, names=_named(kind))
    rbac, why = (
        "rbac.authorization.k8s.io",
        "to see which operators make pods of work that is let in",
    )
    yield Need(rbac, "clusterrolebindings", ("get",), why, names=(OPERATORS,))


def enforcing() -> Iterator[Need]:
    """What enforce mode needs on top, for the cluster as a whole: what has no namespace, and the one step by
    which the engine gets its rights in a managed namespace. ``weir-engine`` of enforce.yaml, an admission
    policy that the engine may not write, keeps that step to managed namespaces."""
    lease = ("get", "create", "update")
    yield Need(
        "coordination.k8s.io", "leases", lease, "so that one worker writes", SYSTEM_NAMESPACE
    )
    why = "because the API server takes policies that read them only from who may read them all"
    for group, resource in (("", "configmaps"), ("apps", "deployments")):
        yield Need(group, resource, ("get",), why)
    policies = policy_names()
    for kind in KINDS:
        if not kind.namespaced:
            yield _keeps(kind, policies.get(kind.name, ()))
    resource, verb = callers.MARKS
    yield Need(callers.GROUP, resource, (verb,), "to mark work as admitted")
    why = "to have rights of its own in managed namespaces"
    yield Need(RBAC, "rolebindings", _WRITES, why, names=(ENGINE,))
    yield Need(RBAC, "clusterroles", ("bind",), why, names=(ENGINE_ROLE,))


def working() -> Iterator[Need]:
    """What the engine needs in each managed namespace, by its RoleBinding there."""
    for adapter in ADAPTERS:
        yield _acts_on(adapter)
    yield Need("", "events", ("create",), "to say on the object what happened")
    for kind in KINDS:
        if kind.namespaced:
            yield _keeps(kind, _OWN_NAMES[kind.name])
    why = "to give teams and the portal those roles"
    yield Need(RBAC, "clusterroles", ("bind",), why, names=(MEMBER_ROLE, PORTAL_ROLE))


_WRITES = ("create", "patch", "delete")
_OWN_NAMES = {
    "RoleBinding": (NAME, PORTAL),
    "ResourceQuota": (NAME,),
    "LimitRange": (NAME,),
    "ConfigMap": (personas.NAME,),
}


def _acts_on(adapter: Adapter) -> Need:
    group, resource = resource_of(adapter.list_path)
    # Plain pods cannot be suspended: they are evicted by deletion.
    verbs = ("get", "update") if adapter.is_mirrored_whole else ("get", "patch", "delete")
    return Need(group, resource, verbs, f"to admit and evict work of kind {adapter.kind}")


def _keeps(kind: GuardrailKind, names: tuple[str, ...]) -> Need:
    """Applying what is not there yet is a create of a name that is known, so rights are limited to names.
    What is given back is never deleted."""
    verbs = _WRITES[:2] if kind.stays else _WRITES
    return Need(*resource_of(kind.list_path), verbs, "to keep the guardrails", names=names)


def _named(kind: GuardrailKind) -> tuple[str, ...]:
    return (kind.only,) if kind.only else ()


def adopting() -> Iterator[Need]:
    """What labels work that runs without a queue, in namespaces in which an admin of the cluster binds it.
    The policy ``weir-adopter`` keeps the portal's account to that label and to whose it is."""
    for adapter in ADAPTERS:
        group, resource = resource_of(adapter.list_path)
        yield Need(
            group, resource, ("patch",), f"to bring work of kind {adapter.kind} into a queue"
        )


def submitting() -> Iterator[Need]:
    """What the portal needs: it acts in people's names, so their own rights bound what it does."""
    for resource in ("deviceclasses", "resourceclaimtemplates"):
        yield Need("resource.k8s.io", resource, ("list",), "to count the devices that work claims")
    users, groups = (("authentication.k8s.io", resource) for resource in ("users", "groups"))
    yield Need(*users, (AS_PERSON,), "to submit, hold and cancel in a person's name")
    yield Need(*groups, (AS_PERSON,), "to act as the one group of them", names=(people.GROUP,))


def acting() -> Iterator[Need]:
    """What the portal may do in a person's name, in managed namespaces alone: the API server asks for it
    beside what the person may."""
    for adapter in ADAPTERS:
        group, resource = resource_of(adapter.list_path)
        verbs = tuple(f"impersonate-on:user-info:{verb}" for verb in ACTS)
        yield Need(group, resource, verbs, f"to act on work of kind {adapter.kind} for people")
    yield Need("", "pods/log", ("impersonate-on:user-info:get",), "to show people their work's log")
    yield Need(
        "", "events", ("impersonate-on:user-info:list",), "to show people what happened to it"
    )
