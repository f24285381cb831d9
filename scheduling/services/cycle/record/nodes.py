"""The cluster's nodes as rows: a row a node and GPU class, only what changed is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from scheduling.cluster.picture.nodes import ObservedNode
from scheduling.cluster.vocabulary.conditions import GONE, Trouble
from scheduling.cluster.vocabulary.topology import Levels
from scheduling.engine import model as m
from scheduling.models import Cluster, Node, NodePool
from scheduling.services.cycle.record.causes import What
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.tables.bulk import write_columns

COLUMNS = ["node_pool", "gpus", "allocated_gpus", "foreign_gpus", "topology", "ready", "troubles"]

PLACEMENT = attrgetter("placement")

Key = tuple[str, str]
"""(node name, class name)"""


class NodeRows:
    """The rows of one cluster, kept in memory by their only writer."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        found = Node.objects.filter(cluster=cluster).select_related("gpu_class")
        self._rows: dict[Key, Node] = {(n.name, n.gpu_class.name): n for n in found}
        self.turned: dict[str, What] = {}
        """Nodes that the last ``save`` found gone, new, ready or down, and which of it."""

    def save(
        self, snapshot: m.Snapshot, rows: PolicyRows, observed: Iterable[ObservedNode]
    ) -> bool:
        """Bring the rows into line with ``snapshot`` in the caller's transaction; whether any changed.

        ``observed`` has the labels, by which pools choose nodes, and what is wrong with each; those of them
        that hand out no GPUs are in no snapshot, and down.
        """
        usage = _milli_gpus(snapshot)
        shown = {(node.name, node.gpu_class): node for node in observed}
        labels = {node.name: node.labels for node in shown.values()}
        self.turned = {}
        new: list[Node] = []
        changed: list[Node] = []
        seen: set[Key] = set()
        for node in (*snapshot.nodes, *self._bare(snapshot, shown)):
            key = (node.name, node.gpu_class)
            seen.add(key)
            pool = _pool(node, rows, labels.get(node.name, {}))
            row = self._rows.get(key)
            values = _values(node, pool, usage.get(key, 0), shown.get(key), row, rows.levels)
            if row is None:
                gpu_class = rows.class_by_name[node.gpu_class]
                row = self._rows[key] = Node(
                    cluster=self.cluster, gpu_class=gpu_class, name=node.name, **values
                )
                new.append(row)
                self.turned[node.name] = What.NODE_CAME
            elif any(getattr(row, name) != value for name, value in values.items()):
                if row.ready != node.ready:
                    self.turned[node.name] = What.NODE_READY if node.ready else What.NODE_DOWN
                for name, value in values.items():
                    setattr(row, name, value)
                changed.append(row)
        gone = [self._rows.pop(key) for key in list(self._rows) if key not in seen]
        self.turned |= dict.fromkeys((row.name for row in gone), What.NODE_WENT)
        Node.objects.bulk_create(new, batch_size=200)
        write_columns(changed, COLUMNS)
        if gone:
            Node.objects.filter(pk__in=[row.pk for row in gone]).delete()
        return bool(new or changed or gone)

    def _bare(self, snapshot: m.Snapshot, shown: Mapping[Key, ObservedNode]) -> Iterable[m.Node]:
        """Machines that hand out none of their GPUs and that nobody is admitted to; each in one class, that
        in which it has or had most."""
        there = {node.name for node in snapshot.nodes}
        most: dict[str, tuple[int, ObservedNode]] = {}
        for key, node in shown.items():
            installed = _installed(node, self._rows.get(key))
            if node.name not in there and installed > most.get(node.name, (-1,))[0]:
                most[node.name] = installed, node
        return (m.Node(n.name, n.gpu_class, gpus=0, ready=False) for _, n in most.values())


def _values(
    node: m.Node,
    pool: NodePool | None,
    usage: int,
    observed: ObservedNode | None,
    row: Node | None,
    levels: Levels,
) -> dict[str, Any]:
    known = _installed(observed, row) if observed and not observed.gpus else 0
    return {
        "node_pool_id": pool.pk if pool else None,
        "gpus": max(node.gpus, known),
        "allocated_gpus": usage,
        "foreign_gpus": node.foreign_gpus,
        "topology": levels.domains(observed.labels) if observed else dict(node.topology),
        "ready": node.ready,
        "troubles": _troubles(observed),
    }


def _installed(node: ObservedNode, row: Node | None) -> int:
    """Milli-GPU of a node that hands out none: as it counts them, else as ``row`` has them from before."""
    return max((trouble.gpus for trouble in node.troubles), default=0) or (row.gpus if row else 0)


def _milli_gpus(snapshot: m.Snapshot) -> dict[Key, int]:
    """Milli-GPU that workloads hold, by node and class."""
    usage: dict[Key, int] = {}
    for work in filter(PLACEMENT, snapshot.workloads):
        for node, members in work.placement.items():
            key = (node, work.gpu_class or "")
            usage[key] = usage.get(key, 0) + members * work.gpus
    return usage


def _troubles(node: ObservedNode | None) -> list[dict[str, Any]]:
    """Of a node that work is still on though the cluster has it no more: that it is gone."""
    found = node.troubles if node else (Trouble(GONE),)
    return [trouble.as_json() for trouble in found]


def _pool(node: m.Node, rows: PolicyRows, labels: Mapping[str, str]) -> NodePool | None:
    """The first pool of the node's class whose labels the node carries."""
    gpu_class = rows.class_by_name[node.gpu_class]
    return next(
        (
            pool
            for pool in rows.node_pools
            if pool.gpu_class_id == gpu_class.pk
            and all(labels.get(key) == value for key, value in pool.node_labels.items())
        ),
        None,
    )
