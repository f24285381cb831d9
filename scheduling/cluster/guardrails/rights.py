"""What Weir asks of a cluster's RBAC: every resource it touches, with the verbs and the reason.

The manifests in docker/kubernetes/ grant exactly this, and tests hold both to what the code does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduling.cluster.adapters import ADAPTERS, Adapter
from scheduling.cluster.guardrails import callers
from scheduling.cluster.guardrails.manifests import MEMBER_ROLE, PORTAL_ROLE, RBAC
from scheduling.cluster.guardrails.reconcile import KINDS, Kind
from scheduling.cluster.vocabulary import devices, people, runtimes
from scheduling.models.queues import SYSTEM_NAMESPACE

READ = ("list", "watch")
AS_PERSON = "impersonate:user-info"
ACTS = ("get", "list", "create", "patch", "delete")
"""What the portal does in people's names."""
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
    """What enforce mode needs on top."""
    for adapter in ADAPTERS:
        yield _acts_on(adapter)
    yield Need("", "events", ("create",), "to say on the object what happened")
    lease = ("get", "create", "update")
    yield Need(
        "coordination.k8s.io", "leases", lease, "so that one worker writes", SYSTEM_NAMESPACE
    )
    for kind in KINDS:
        yield from _keeps(kind)
    resource, verb = callers.MARKS
    yield Need(callers.GROUP, resource, (verb,), "to mark work as admitted")
    why = "to give teams and the portal those roles in managed namespaces"
    yield Need(RBAC, "clusterroles", ("bind",), why, names=(MEMBER_ROLE, PORTAL_ROLE))


def _acts_on(adapter: Adapter) -> Need:
    group, resource = resource_of(adapter.list_path)
    # Plain pods cannot be suspended: they are evicted by deletion.
    verbs = ("get", "update") if adapter.is_mirrored_whole else ("get", "patch", "delete")
    return Need(group, resource, verbs, f"to admit and evict work of kind {adapter.kind}")


def _keeps(kind: Kind) -> Iterator[Need]:
    """Applying what is not there yet is a create as well, and what is created has no name yet that a right
    could be limited to. What is given back is never deleted. A policy that reads parameters is taken only
    from who may read all objects of their kind."""
    resource, why = resource_of(kind.list_path), "to keep the guardrails"
    verbs = ("patch",) if kind.kept else ("patch", "delete")
    if kind.only:
        yield Need(*resource, ("get", "create"), why)
        yield Need(*resource, verbs, why, names=_named(kind))
    else:
        yield Need(*resource, ("create", *verbs), why)


def _named(kind: Kind) -> tuple[str, ...]:
    return (kind.only,) if kind.only else ()


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


def acting_before() -> Iterator[Need]:
    """The same on a server before Kubernetes 1.36, which knows no bounds of what is done in a name."""
    yield Need("", "users", ("impersonate",), "to submit, hold and cancel in a person's name")
    yield Need("", "groups", ("impersonate",), "to act as the one group", names=(people.GROUP,))
