"""Which free GPUs are fragmented: the one definition, of pages and the map of nodes.

Free GPUs of a node are *fragmented* where they are fewer than the smallest member that is wanted.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median_low

from django.db.models import Count

from portal.selectors.reasons import Ends, ended_by
from scheduling.models import Cluster, GpuClass, State, Workload
from scheduling.models.workloads import WAITING

WANT_ROOM = ended_by(Ends.ROOM)
"""Reasons of work that would start if GPUs were free where it fits."""


class MemberSizes:
    """Sizes of gang members that wait and run, milli-GPU. One query."""

    def __init__(self, cluster: Cluster) -> None:
        self.waiting: list[tuple[int, list[str], bool]] = []
        """(size, classes that it accepts, whether it waits for room)"""
        self.running: dict[int | None, list[int]] = defaultdict(list)
        sizes = Workload.objects.filter(cluster=cluster).exclude(state=State.FINISHED)
        columns = ("state", "gpus", "gpu_class_id", "gpu_classes", "reason")
        grouped = sizes.order_by().values_list(*columns)
        for state, gpus, class_id, names, why, count in grouped.annotate(count=Count("id")):
            if state in WAITING:
                self.waiting.append((gpus, names, why in WANT_ROOM))
            else:
                self.running[class_id].extend([gpus] * count)

    def smallest_wanted(self, gpu_class: GpuClass) -> int:
        """What a node must have free to be of use; free GPUs on a node with fewer are *fragmented*.

        The smallest member of what waits for room and accepts the class: what a quota or a limit stops uses
        no GPU, however many are free. Where nothing waits for room, the smallest of all that waits; where
        nothing waits, the median member of what runs on it; 0 when neither is known.
        """
        sizes = [
            (g, room) for g, names, room in self.waiting if not names or gpu_class.name in names
        ]
        wanted = [gpus for gpus, for_room in sizes if for_room] or [gpus for gpus, _ in sizes]
        if wanted:
            return min(wanted)
        return median_low(self.running.get(gpu_class.pk) or [0])
