"""Fragmented GPUs of a cluster as its rows stand; which ones those are, the engine says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from django.db.models import Count

from scheduling.engine import left_over, wanted_member
from scheduling.models import Cluster, GpuClass, State, Workload
from scheduling.models.workloads import WAITING

__all__ = ["MemberSizes", "left_over"]


class MemberSizes:
    """Sizes of gang members that wait and run, milli-GPU. One query."""

    def __init__(self, cluster: Cluster) -> None:
        self.waiting: list[tuple[int, str, list[str]]] = []
        """(size, reason, classes that it accepts)"""
        self.running: dict[int | None, list[int]] = defaultdict(list)
        sizes = Workload.objects.filter(cluster=cluster).exclude(state=State.FINISHED)
        columns = ("state", "gpus", "gpu_class_id", "gpu_classes", "reason")
        grouped = sizes.order_by().values_list(*columns)
        for state, gpus, class_id, names, why, count in grouped.annotate(count=Count("id")):
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
