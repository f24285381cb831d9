"""Snapshots that have to end as another one does: the same rows under other names, twice the size, or beside
something that has nothing to do with them. Documents as ``document.parse`` reads them; new ones are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

Document = dict[str, Any]


def renamed(document: Document) -> tuple[Document, Mapping[str, str]]:
    """The document with names of queues, nodes and workloads in the opposite order, and the new name of each
    workload.
    """
    twin = deepcopy(document)
    queues, nodes, work = (
        _reversed(twin[part], letter)
        for part, letter in (("queues", "q"), ("nodes", "m"), ("workloads", "w"))
    )
    for queue in twin["queues"]:
        queue["name"] = queues[queue["name"]]
        if "parent" in queue:
            queue["parent"] = queues[queue["parent"]]
    for node in twin["nodes"]:
        node["name"] = nodes[node["name"]]
    for workload in twin["workloads"]:
        workload["name"], workload["queue"] = work[workload["name"]], queues[workload["queue"]]
        for field in ("placement", "devices"):
            if field in workload:
                workload[field] = {nodes[n]: there for n, there in workload[field].items()}
    return twin, work


def _reversed(rows: list[Document], letter: str) -> dict[str, str]:
    names = sorted(row["name"] for row in rows)
    return {name: f"{letter}{len(names) - i:03d}" for i, name in enumerate(names)}


def doubled(document: Document) -> tuple[Document, Mapping[str, str]]:
    """Twice the GPUs everywhere."""
    twin = deepcopy(document)
    for node in twin["nodes"]:
        node["gpus"] *= 2
    for workload in twin["workloads"]:
        workload["gpus"] = 2 * workload.get("gpus", 1)
    for queue in twin["queues"]:
        for quota in queue["quotas"].values():
            for field in ("nominal", "borrowing_limit", "lending_limit"):
                if field in quota:
                    quota[field] *= 2
    return twin, _same(twin)


def beside_a_full_class(document: Document) -> tuple[Document, Mapping[str, str]]:
    """A class more, all of it held by a queue of its own."""
    twin = deepcopy(document)
    own = [gpu_class["name"] for gpu_class in twin["gpu_classes"]]
    names = _same(twin)
    for workload in twin["workloads"]:
        workload.setdefault("gpu_classes", own)
    twin["gpu_classes"] = [*twin["gpu_classes"], {"name": "full"}]
    twin["nodes"] = [*twin["nodes"], {"name": "full-1", "gpu_class": "full", "gpus": 4}]
    quotas = {"full": {"nominal": 4}}
    twin["queues"] = [*twin["queues"], {"name": "aside", "quotas": quotas}]
    runs = {"state": "running", "submitted": twin["now"], "started": twin["now"]}
    seat = {"gpus": 4, "gpu_class": "full", "gpu_classes": ["full"], "placement": {"full-1": 1}}
    rank = twin["priority_classes"][0]["name"]
    twin["workloads"].append(
        {"name": "aside-0", "queue": "aside", "priority_class": rank, **seat, **runs}
    )
    return twin, names


def _same(document: Document) -> dict[str, str]:
    return {workload["name"]: workload["name"] for workload in document["workloads"]}


def shares_gpus(document: Document) -> bool:
    """Whether any workload asks for a share of a GPU: twice that is no share."""
    return any(workload.get("gpus", 1) < 1 for workload in document["workloads"])


TWINS: Mapping[str, Callable[[Document], tuple[Document, Mapping[str, str]]]] = {
    "as it is": lambda document: (document, _same(document)),
    "other names": renamed,
    "twice the size": doubled,
    "beside a full class": beside_a_full_class,
}
