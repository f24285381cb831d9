"""What loans between queues move, as bars and divisions show it. Milli-GPU."""

from __future__ import annotations

from scheduling.models import Cluster, GpuClass
from scheduling.services.lending import moved_at


def loans_of(cluster: Cluster, gpu_class: GpuClass) -> dict[int, int]:
    """Queue id -> what it is guaranteed of the class more (negative: less) than it was granted."""
    moved = moved_at(cluster, cluster.now())
    return {queue: by for (queue, kind), by in moved.items() if kind == gpu_class.pk}
