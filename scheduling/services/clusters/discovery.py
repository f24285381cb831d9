"""What stands and runs on a cluster before Weir has a say, and the queues that follow from it.

Reads the API server, once, and writes nothing there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from scheduling.cluster.adapters import ClassSpec
from scheduling.cluster.adapters import pods as pods_of
from scheduling.cluster.connection.client import ApiError, Client, NotFoundError
from scheduling.cluster.picture.nodes import closest, trim_node
from scheduling.cluster.vocabulary.labels import MANAGED
from scheduling.cluster.vocabulary.quantities import quantity
from scheduling.engine.reasons.wording import plural
from scheduling.models import MILLI, Cluster, GpuClass
from scheduling.services.clusters.connection import talking_to
from scheduling.services.clusters.naming import name_origin
from scheduling.services.errors import ServiceError
from scheduling.services.queues.tree_files import QueueSpec

Json = dict[str, Any]

TEAM_LABELS = ("weir.dev/team", "team", "app.kubernetes.io/part-of", "department")
"""Labels of a namespace that say whose it is, the best first."""
SYSTEM = ("kube-", "weir-system")
ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class FoundClass:
    gpu_class: GpuClass
    nodes: int = 0
    ready: int = 0
    gpus: int = 0
    """Of all nodes; ``ready_gpus`` of those that are ready."""
    ready_gpus: int = 0
    usage: int = 0

    @property
    def down(self) -> int:
        return self.gpus - self.ready_gpus

    @property
    def spec(self) -> ClassSpec:
        found = self.gpu_class
        return ClassSpec(found.name, found.resource_name, dict(found.node_labels))

    @property
    def product(self) -> str:
        return ", ".join(self.gpu_class.node_labels.values()) or self.gpu_class.resource_name

    @property
    def origin(self) -> str:
        return name_origin(self.gpu_class)


@dataclass(slots=True)
class FoundNamespace:
    name: str
    labels: Mapping[str, str]
    kinds: set[str] = field(default_factory=set)
    work: set[str] = field(default_factory=set)
    usage: Counter[str] = field(default_factory=Counter)
    """GPUs by class."""
    bare: int = 0
    """Pods without an owner."""

    @property
    def holdings(self) -> list[tuple[str, int]]:
        return sorted(self.usage.items())

    @property
    def team(self) -> tuple[str, str]:
        """(label, value) that says whose it is; both empty where none does."""
        key = next((k for k in TEAM_LABELS if self.labels.get(k)), "")
        return key, self.labels.get(key, "")


@dataclass(frozen=True, slots=True)
class Discovery:
    classes: Sequence[FoundClass]
    namespaces: Sequence[FoundNamespace]
    """Those that hold GPUs, most first."""
    nodes: int
    names: frozenset[str]
    """Of every namespace that there is."""

    @property
    def every_namespace(self) -> int:
        return len(self.names)

    @property
    def gpus(self) -> int:
        return sum(c.gpus for c in self.classes)

    @property
    def usage(self) -> int:
        return sum(c.usage for c in self.classes)

    @property
    def work(self) -> int:
        return sum(len(n.work) + n.bare for n in self.namespaces)

    @property
    def down(self) -> int:
        return sum(c.down for c in self.classes)

    @property
    def bare(self) -> int:
        return sum(n.bare for n in self.namespaces)


def look(cluster: Cluster) -> Discovery:
    """One list of nodes, pods and namespaces each. Raises ServiceError when the cluster does not answer."""
    with talking_to(cluster) as client:
        nodes = [trim_node(node) for node in _list(client, "nodes")]
        pods = _list(client, "pods")
        spaces = _list(client, "namespaces")
    classes = [FoundClass(gpu_class) for gpu_class in cluster.gpu_classes.all()]
    where = _count_nodes(nodes, classes)
    labels = {n["metadata"]["name"]: n["metadata"].get("labels") or {} for n in spaces}
    found = {name: FoundNamespace(name, own) for name, own in labels.items()}
    for pod in pods:
        _count_pod(pod, where, found)
    holding = [n for n in found.values() if n.usage]
    holding.sort(key=lambda n: (-sum(n.usage.values()), n.name))
    return Discovery(classes, holding, len(nodes), frozenset(labels))


def has_namespace(cluster: Cluster, name: str) -> bool:
    """Whether there is a namespace of that name. Raises ServiceError when the cluster does not answer."""
    with talking_to(cluster) as client:
        try:
            client.get(f"/api/v1/namespaces/{name}")
        except NotFoundError:
            return False
    return True


def absent(cluster: Cluster, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that are no namespace of it. Raises ServiceError when it does not answer."""
    with talking_to(cluster) as client:
        known = {one["metadata"]["name"] for one in _list(client, "namespaces")}
    return sorted(set(names) - known)


def what_stands(cluster: Cluster, name: str) -> str | None:
    """What runs in a namespace that Weir does not keep yet, in words; None where nothing does, and where the
    cluster does not say."""
    try:
        with talking_to(cluster) as client:
            found = client.get(f"/api/v1/namespaces/{name}")
            pods = client.get(f"/api/v1/namespaces/{name}/pods").get("items") or []
    except (ServiceError, ApiError):
        return None
    if MANAGED in (found["metadata"].get("labels") or {}):
        return None
    living = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in ENDED]
    accounts = sorted({pod["spec"].get("serviceAccountName") or "default" for pod in living})
    if not living:
        return None
    which = "1 pod, which runs" if len(living) == 1 else f"{len(living)} pods, which run"
    return f"{which} as {', '.join(accounts)}"


def _list(client: Client, resource: str) -> list[Json]:
    found: list[Json] = client.get(f"/api/v1/{resource}").get("items") or []
    return found


def _count_nodes(
    nodes: Iterable[Json], classes: Sequence[FoundClass]
) -> dict[str, list[FoundClass]]:
    """Node -> the classes of its GPUs, which are counted on the way."""
    where: dict[str, list[FoundClass]] = defaultdict(list)
    by_name = {seen.gpu_class.name: seen for seen in classes}
    for node in nodes:
        labels, status = node["metadata"].get("labels") or {}, node["status"]
        ready = any(
            c.get("type") == "Ready" and c.get("status") == "True" for c in status["conditions"]
        )
        for spec in closest(labels, [seen.spec for seen in classes]).values():
            seen = by_name[spec.name]
            gpus = int(quantity(status["capacity"].get(spec.resource_name, "0")))
            if gpus:
                where[node["metadata"]["name"]].append(seen)
                seen.nodes, seen.gpus = seen.nodes + 1, seen.gpus + gpus
                seen.ready, seen.ready_gpus = seen.ready + ready, seen.ready_gpus + gpus * ready
    return where


def _count_pod(
    pod: Json, where: Mapping[str, Sequence[FoundClass]], found: Mapping[str, FoundNamespace]
) -> None:
    meta, spec = pod["metadata"], pod.get("spec") or {}
    space = found.get(meta["namespace"])
    if space is None or (pod.get("status") or {}).get("phase") in ENDED:
        return
    holds, asks = False, pods_of.requests_of(spec)
    for seen in where.get(spec.get("nodeName", ""), ()):
        gpus = asks.get(seen.gpu_class.resource_name, 0) // MILLI
        if gpus:
            holds = True
            seen.usage += gpus
            space.usage[seen.gpu_class.name] += gpus
    if holds:
        _note_owner(meta, space)


def _note_owner(meta: Json, space: FoundNamespace) -> None:
    owners = meta.get("ownerReferences") or ()
    if not owners:
        space.bare += 1
        return
    space.kinds.add(owners[0].get("kind", ""))
    space.work.add(owners[0].get("uid", ""))


def propose(seen: Discovery) -> list[QueueSpec]:
    """A queue for each namespace that holds GPUs, with what it holds as its nominal quota, so that nobody
    loses on the first day; namespaces that one label calls the same hang below one queue."""
    alone: list[QueueSpec] = []
    teams: dict[str, list[QueueSpec]] = {}
    labels: dict[str, str] = {}
    for space in seen.namespaces:
        if space.name.startswith(SYSTEM) or space.name == "default":
            continue
        nominal = {name: Decimal(gpus) for name, gpus in sorted(space.usage.items())}
        key, team = space.team
        leaf = QueueSpec(space.name, namespace=space.name, nominal=nominal)
        if team and team != space.name:
            labels[team] = key
            teams.setdefault(team, []).append(leaf)
        else:
            alone.append(leaf)
    above = [_above(team, labels[team], leaves) for team, leaves in teams.items()]
    return [*above, *alone]


def _above(team: str, label: str, leaves: list[QueueSpec]) -> QueueSpec:
    total: Counter[str] = Counter()
    for leaf in leaves:
        total.update({name: int(gpus) for name, gpus in leaf.nominal.items()})
    nominal = {name: Decimal(gpus) for name, gpus in sorted(total.items())}
    names = plural(len(leaves), "namespace")
    return QueueSpec(team, nominal=nominal, queues=leaves, why=f"label {label}={team} on {names}")
