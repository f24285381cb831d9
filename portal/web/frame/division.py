"""The tree of queues and the newest division as pages read them: once a revision, whoever asks.

Rows of everybody: what of them a person may see is the page's to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from portal.web.frame.revision_cache import remembered
from scheduling.models import Cluster, Cycle, Queue, Share


def tree_of(cluster: Cluster) -> Sequence[Queue]:
    """All queues, by path."""
    every = Queue.objects.filter(cluster=cluster).order_by("path")
    return remembered.of(cluster, "queues", lambda: list(every))


def shares_of(cluster: Cluster) -> Mapping[int, Mapping[int, Share]]:
    """By class and queue, by id."""
    return remembered.of(cluster, "shares", lambda: _shares(cluster))


def _shares(cluster: Cluster) -> Mapping[int, Mapping[int, Share]]:
    found: dict[int, dict[int, Share]] = defaultdict(dict)
    for share in Share.objects.filter(gpu_class__cluster=cluster).order_by():
        found[share.gpu_class_id][share.queue_id] = share
    return found


def last_cycle(cluster: Cluster) -> Cycle | None:
    """The newest; None before the first."""
    return remembered.of(
        cluster, "cycle", lambda: Cycle.objects.filter(cluster=cluster).order_by("-number").first()
    )
