"""The example organisation as pages see it: nodes hold what the workloads on them hold."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from scheduling.models import Cluster, Workload
from tests.factories import NOW, example_cluster


def overview_cluster(*, at: datetime = NOW) -> Cluster:
    cluster = example_cluster(at=at)
    held: Counter[str] = Counter()
    for work in Workload.objects.filter(cluster=cluster):
        for node, members in work.placement.items():
            held[node] += members * work.gpus
    for node in cluster.nodes.all():
        node.allocated_gpus = held[node.name]
        node.save(update_fields=["allocated_gpus"])
    return cluster
