"""Fragmented GPUs of a cluster as its rows stand, and how many there were by the minute.

Which ones those are, the engine says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Count, QuerySet

from scheduling.engine import MILLI, left_over, wanted_member
from scheduling.models import Cluster, GpuClass, Node, State, UsageSample, Workload
from scheduling.models.ledger import Resolution
from scheduling.models.workloads import WAITING

__all__ = ["Alike", "MemberSizes", "alike", "book", "fragmented_gpus", "left_over"]

STANDS = timedelta(minutes=2)
"""Wall time for which a look stands: twice the time between two of them."""


Alike = tuple[Node, int]
"""Nodes of which as much is used: one of them, unsaved, and how many. Of thousands few differ."""


def alike(nodes: QuerySet[Node]) -> Iterator[Alike]:
    """One query."""
    columns = ("gpu_class_id", "ready", "gpus", "allocated_gpus", "foreign_gpus")
    for *row, count in nodes.order_by().values_list(*columns).annotate(count=Count("pk")):
        yield Node(**dict(zip(columns, row, strict=True))), count


class MemberSizes:
    """Sizes of gang members that wait and run, milli-GPU. One query."""

    def __init__(self, cluster: Cluster) -> None:
        self.waiting: list[tuple[int, str, list[str]]] = []
        """(size, reason, classes that it accepts)"""
        self.running: dict[int | None, list[int]] = defaultdict(list)
        sizes = Workload.objects.filter(cluster=cluster).exclude(state=State.FINISHED)
        columns = ("state", "gpus", "shapes", "gpu_class_id", "gpu_classes", "reason")
        grouped = sizes.order_by().values_list(*columns)
        counted = grouped.annotate(count=Count("id"))
        for state, part, shapes, class_id, names, why, count in counted:
            # Of unlike members the largest finds room last.
            gpus = max([part, *(round(one["gpus"] * MILLI) for one in shapes)])
            if state in WAITING:
                self.waiting.append((gpus, why, names))
            else:
                self.running[class_id].extend([gpus] * count)

    def wanted(self, gpu_class: GpuClass) -> int:
        """The member of which a node's free GPUs of the class have to hold whole ones, to be of use."""
        return wanted_member(self._waiting(gpu_class), self.running.get(gpu_class.pk, ()))

    def is_pending(self, gpu_class: GpuClass) -> bool:
        """Whether that member waits; else it is one of those that usually run."""
        return any(gpus for gpus, _ in self._waiting(gpu_class))

    def _waiting(self, gpu_class: GpuClass) -> Iterator[tuple[int, str]]:
        for gpus, why, names in self.waiting:
            if not names or gpu_class.name in names:
                yield gpus, why


def fragmented_gpus(cluster: Cluster) -> dict[int, int]:
    """Class -> milli-GPU that are free and fragmented now. Three queries."""
    sizes = MemberSizes(cluster)
    wanted = {c.pk: sizes.wanted(c) for c in cluster.gpu_classes.all()}
    found: dict[int, int] = defaultdict(int, dict.fromkeys(wanted, 0))
    for node, count in alike(Node.objects.filter(cluster=cluster, ready=True)):
        found[node.gpu_class_id] += count * left_over(node.free_gpus, wanted[node.gpu_class_id])
    return dict(found)


def book(cluster: Cluster) -> int:
    """Say so in the minutes of the root that nobody looked at yet; how many rows were written.

    Two workers at once write the same; minutes further back than a look stands for stay unknown.
    """
    now, found = cluster.now(), fragmented_gpus(cluster)
    since = now - STANDS * max(1.0, cluster.clock_speed)
    rows = UsageSample.objects.filter(
        queue__cluster=cluster, queue__parent=None, resolution=Resolution.MINUTE,
        start__gt=since, start__lte=now, fragmented_gpus=None,
    )  # fmt: skip
    return sum(
        rows.filter(gpu_class=pk).update(fragmented_gpus=float(gpus)) for pk, gpus in found.items()
    )
