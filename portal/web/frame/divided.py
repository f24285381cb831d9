"""The tree of queues and the newest division as pages read them: once a revision, whoever asks.

Rows of everybody: what of them a person may see is the page's to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from portal.web.frame.remembered import remembered
from scheduling.models import Cluster, GpuClass, Queue, Share


def tree_of(cluster: Cluster) -> Sequence[Queue]:
    """All queues, by path."""
    every = Queue.objects.filter(cluster=cluster).order_by("path")
    return remembered.of(cluster, "queues", lambda: list(every))


def shares_of(cluster: Cluster, gpu_class: GpuClass) -> Mapping[int, Share]:
    """Of one class, by queue."""
    rows = Share.objects.filter(gpu_class=gpu_class).order_by()
    return remembered.of(
        cluster, ("shares", gpu_class.pk), lambda: {share.queue_id: share for share in rows}
    )
