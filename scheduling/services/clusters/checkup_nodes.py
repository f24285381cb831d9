"""What nodes of a cluster lack for Weir: GPUs, classes that find them, levels of topology."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scheduling.cluster.connection.client import Client
from scheduling.cluster.picture.compose import count_devices
from scheduling.cluster.vocabulary.devices import Devices
from scheduling.cluster.vocabulary.quantities import quantity
from scheduling.cluster.vocabulary.topology import Levels
from scheduling.engine.reasons.wording import plural
from scheduling.models import Cluster, GpuClass, Queue
from scheduling.services.clusters.gaps import Grade, Item
from scheduling.services.lists import few
from scheduling.services.queues.knobs import levels_of

Json = dict[str, Any]


def nodes_items(cluster: Cluster, client: Client) -> Iterator[Item]:
    nodes = _with_devices(client.get("/api/v1/nodes")["items"], count_devices(client))
    classes = list(cluster.gpu_classes.all())
    if not classes:
        yield Item(
            Grade.MISSING, "GPU classes", "The cluster has no GPU class, so nothing can be shared.",
            f"Run manage.py cluster classes {cluster.name}, which finds them by the nodes' labels.",
        )  # fmt: skip
    for gpu_class in classes:
        yield _class(gpu_class, nodes)
    yield from _unclaimed(classes, nodes)
    yield from _topology(nodes, levels_of(cluster))
    if not Queue.objects.filter(cluster=cluster, parent__isnull=False).exists():
        yield Item(
            Grade.MISSING, "queues", "There is no queue below the root, so no work is routed.",
            "Add queues on the page Quotas.",
        )  # fmt: skip


def _with_devices(nodes: list[Json], counted: Devices) -> list[Json]:
    """``nodes`` with their devices among what they offer."""
    for node in nodes:
        offers = node.setdefault("status", {}).setdefault("allocatable", {})
        for name, amount in counted.offered(node["metadata"]["name"]).items():
            offers.setdefault(name, str(amount // 1000))
    return nodes


def _class(gpu_class: GpuClass, nodes: list[Json]) -> Item:
    labelled = [n for n in nodes if _carries(n, gpu_class.node_labels)]
    wanted = ", ".join(f"{k}={v}" for k, v in gpu_class.node_labels.items()) or "no label at all"
    if not labelled:
        return Item(
            Grade.MISSING, "nodes", f"No node of class {gpu_class.name} is there: none has {wanted}.",
            "Label the nodes, or change the labels of the class.",
        )  # fmt: skip
    counts = [c for n in labelled if (c := _count(n, gpu_class.resource_name))]
    if not counts:
        return Item(
            Grade.MISSING,
            "nodes",
            f"{plural(len(labelled), 'node')} with {wanted}, but none offers {gpu_class.resource_name}.",
            "Run the device plugin on them, or correct the class's resource name.",
        )
    sentence = f"{gpu_class.name}: {plural(sum(counts), 'GPU')} on {_nodes_in_words(len(counts))}."
    return Item(Grade.GOOD, "nodes", sentence)


def _nodes_in_words(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _unclaimed(classes: list[GpuClass], nodes: list[Json]) -> Iterator[Item]:
    """Nodes with GPUs of which Weir knows nothing, and nodes that two classes claim at once."""
    names = {c.resource_name for c in classes}
    lost, torn = [], []
    for node in nodes:
        mine = [
            c for c in classes if _carries(node, c.node_labels) and _count(node, c.resource_name)
        ]
        if not mine and any(_count(node, name) for name in names):
            lost.append(node["metadata"]["name"])
        if len({c.resource_name for c in mine}) < len(mine):
            torn.append(node["metadata"]["name"])
    if lost:
        yield Item(
            Grade.ADVICE, "nodes", f"{_some(lost, 'has', 'have')} GPUs that belong to no class.",
            "Add a class for them, or label them.",
        )  # fmt: skip
    if torn:
        yield Item(
            Grade.MISSING, "nodes", f"{_some(torn, 'belongs', 'belong')} to two classes of one resource.",
            "Make the labels of those classes exclude each other.",
        )  # fmt: skip


def _topology(nodes: list[Json], levels: Levels) -> Iterator[Item]:
    for level, keys in levels.labels.items():
        bare = [
            n["metadata"]["name"]
            for n in nodes
            if not any(key in (n["metadata"].get("labels") or {}) for key in keys)
        ]
        if bare:
            yield Item(
                Grade.ADVICE, "topology", f"{_some(bare, 'names', 'name')} no {level}.",
                f"Label them {keys[0]}, or gangs cannot be kept together by {level}.",
            )  # fmt: skip


def _some(names: list[str], does: str, do: str) -> str:
    return f"Node {names[0]} {does}" if len(names) == 1 else f"Nodes {few(names, 3)} {do}"


def _carries(node: Json, wanted: Mapping[str, str]) -> bool:
    labels = node["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def _count(node: Json, resource_name: str) -> int:
    return int(
        quantity(((node.get("status") or {}).get("allocatable") or {}).get(resource_name, 0))
    )
