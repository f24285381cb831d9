"""How many free GPUs were of no use, by the minute: looked at beside the cycles, since it reads all nodes."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

from scheduling.models import Cluster, Node, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.explain.fragmentation import MemberSizes, left_over

STANDS = timedelta(minutes=2)
"""Wall time for which a look stands: twice the time between two of them."""


def fragmented_gpus(cluster: Cluster) -> dict[int, int]:
    """Class -> milli-GPU that are free and fragmented now. Three queries."""
    sizes = MemberSizes(cluster)
    wanted = {c.pk: sizes.wanted(c) for c in cluster.gpu_classes.all()}
    found: dict[int, int] = defaultdict(int, dict.fromkeys(wanted, 0))
    for node in Node.objects.filter(cluster=cluster, ready=True):
        found[node.gpu_class_id] += left_over(node.free_gpus, wanted[node.gpu_class_id])
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
