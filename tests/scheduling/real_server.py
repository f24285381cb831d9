"""A real control plane with the face of the embedded server, so that suites run on either."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.connection.client import (
    Client,
    ConflictError,
    NotFoundError,
    configuration_from,
)
from scheduling.cluster.guardrails.personas import READERS
from tests.scheduling.canary import wait_until_taken_up
from tests.scheduling.kube import add_node, eventually, node
from tests.scheduling.proxy import FaultProxy
from workshop.testbed.control_plane.plane import ControlPlane

Json = dict[str, Any]

_AT_ONCE = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
_NODES = {"n1", "n2"}
"""Nodes that stay; a new one takes a second to be let in."""
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
_EMPTIED = (
    *(adapter.path("default", "") for adapter in ADAPTERS),
    "/api/v1/namespaces/default/events",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/resourcequotas",
    "/api/v1/namespaces/default/limitranges",
    "/apis/storage.k8s.io/v1/storageclasses",
    _BINDINGS,
    "/apis/node.k8s.io/v1/runtimeclasses",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/apis/coordination.k8s.io/v1/namespaces/weir-system/leases",
)
_POLICIES = (
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
)
"""Those that read parameters stay: the server stops following ConfigMaps once the last is gone."""
_STOPPED = (
    ("/apis/apps/v1", "deployments"),
    ("/apis/apps/v1", "statefulsets"),
    ("/apis/apps/v1", "daemonsets"),
    ("/apis/apps/v1", "replicasets"),
    ("/apis/batch/v1", "cronjobs"),
    ("/apis/batch/v1", "jobs"),
    ("/api/v1", "pods"),
)
"""What makes pods, in any namespace, before the pods: what is left of one test would keep making them."""
_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_MEMBER_ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/weir-member"
_EVERYBODY_EDITS = {
    "metadata": {"name": "everybody-edits"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}
    ],
}
"""People act in their own names; the embedded server lets everybody in."""
SETTLED_S = 60.0


class RealServer:
    """One test's view of the shared control plane: emptied first, reached through a proxy."""

    def __init__(self, plane: ControlPlane, proxy: FaultProxy, direct: Client) -> None:
        self.plane = plane
        self.direct = direct
        """Past the proxy and its faults."""
        self.url = proxy.url
        self.faults = proxy.faults
        self.drop_connections = proxy.drop_connections

    def compact(self) -> None:
        """Forget history. The API server remembers some in its own cache, until it starts anew."""
        self.plane.compact()
        self.restart()

    def restart(self) -> None:
        """Kill the API server and start it again."""
        self.plane.stop_part("kube-apiserver", 9)
        self.plane.start_part("kube-apiserver")


@contextmanager
def real_server(plane: ControlPlane) -> Iterator[RealServer]:
    """``plane`` behind a proxy of its own; people may work in the namespace ``default``."""
    client = Client(configuration_from(plane.access.kubeconfig))
    client.create(_BINDINGS, _EVERYBODY_EDITS)
    with FaultProxy(plane.access) as proxy:
        yield RealServer(plane, proxy, client)
    client.close()


def empty(plane: ControlPlane, *, ruled_in: str = "") -> None:
    """Leave nothing of the tests before that another could see, nor pods that still stop.

    Namespaces stay (they take seconds to go), so a test that makes one gives it a new name. The policies of
    the namespace ``ruled_in`` stay for a test that brings them into step itself; nothing else stays in
    there. An API server compiles each policy that is made or edited, which takes seconds for all of them.
    """
    client = Client(configuration_from(plane.access.kubeconfig))
    going = () if ruled_in else _POLICIES
    ruled = any(_passing(client, path) for path in going)
    _empty(client, going)
    if ruled_in:
        _clear(client, ruled_in)
    if ruled:
        # What is deleted is still gone by for a moment, and would refuse what the next test makes.
        wait_until_taken_up(client)
    eventually(lambda: _is_settled(client), SETTLED_S)
    client.close()


def _empty(client: Client, policies: Sequence[str]) -> None:
    for path in (*_EMPTIED, _MEMBER_ROLE):
        with suppress(NotFoundError):
            client.delete(path, _AT_ONCE)
    for name in _names(client, "/api/v1/nodes") - _NODES:
        client.delete(f"/api/v1/nodes/{name}")
    for path in policies:
        for name in _passing(client, path):
            client.delete(f"{path}/{name}")
    for name in _names(client, _PRIORITIES):
        if not name.startswith("system-"):
            client.delete(f"{_PRIORITIES}/{name}")
    client.patch("/api/v1/namespaces/default", {"metadata": {"labels": _unlabelled(client)}})
    for name in sorted(_NODES):
        _furnish(client, name)


NOT_OFFERED = {"weir.dev/offered": None}
"""Of the labels of a namespace that are an administrator's."""


def _clear(client: Client, namespace: str) -> None:
    """Everything in it goes but the account that pods need, and what an administrator said of it."""
    home = f"/api/v1/namespaces/{namespace}"
    with suppress(NotFoundError):
        said = client.get(home)["metadata"].get("annotations") or {}
        client.patch(
            home, {"metadata": {"annotations": dict.fromkeys(said), "labels": NOT_OFFERED}}
        )
    for path in _collections(client, namespace):
        with suppress(NotFoundError):
            client.delete(path, _AT_ONCE)
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    for name in _names(client, accounts) - {"default"}:
        client.delete(f"{accounts}/{name}")


def _collections(client: Client, namespace: str) -> Iterator[str]:
    """Where all that the server keeps by namespace is listed."""
    groups = client.get("/apis")["groups"]
    for root in ("/api/v1", *(f"/apis/{g['preferredVersion']['groupVersion']}" for g in groups)):
        for kind in client.get(root)["resources"]:
            together = kind["namespaced"] and "deletecollection" in kind["verbs"]
            if together and kind["name"] != "serviceaccounts":
                yield f"{root}/namespaces/{namespace}/{kind['name']}"


def _passing(client: Client, path: str) -> set[str]:
    """Policies or bindings that go with their test."""
    return {name for name in _names(client, path) if not name.startswith(READERS)}


def _unlabelled(client: Client) -> dict[str, None]:
    labels = client.get("/api/v1/namespaces/default")["metadata"].get("labels") or {}
    return {name: None for name in labels if not name.startswith("kubernetes.io/")}


def _furnish(client: Client, name: str) -> None:
    """A node as a test expects it, whatever the one before did to it."""
    path = f"/api/v1/nodes/{name}"
    fresh = node(name)
    try:
        present = client.get(path)
    except NotFoundError:
        add_node(client, fresh)
        return
    if present["metadata"]["labels"] != fresh["metadata"]["labels"] or _is_altered(present):
        client.delete(path)
        add_node(client, fresh)


def _is_altered(present: Json) -> bool:
    kept = present["metadata"].get("annotations") or {}
    return bool(present["spec"].get("unschedulable")) or any("weir" in name for name in kept)


def _is_settled(client: Client) -> bool:
    left = [
        (f"{root}/namespaces/{item['metadata']['namespace']}/{plural}", item["metadata"]["name"])
        for root, plural in _STOPPED
        for item in client.get(f"{root}/{plural}")["items"]
    ]
    for path, name in left:
        _delete(client, f"{path}/{name}")
    return not left and all(_is_open(n) for n in client.get("/api/v1/nodes")["items"])


def _is_open(present: Json) -> bool:
    """New nodes are tainted until a controller has seen them ready."""
    ready = {c["type"]: c["status"] for c in present["status"]["conditions"]}
    return ready.get("Ready") == "True" and not present["spec"].get("taints")


def _names(client: Client, path: str) -> set[str]:
    return {item["metadata"]["name"] for item in client.get(path)["items"]}


def _delete(client: Client, path: str) -> None:
    try:
        client.delete(path, _AT_ONCE)
    except (NotFoundError, ConflictError):
        return
