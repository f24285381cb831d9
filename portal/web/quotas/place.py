"""Which queue a page of quotas is about, and what the person may do there."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from portal.teams.access import dividable_queues, visible_queues
from scheduling.models import Cluster, Queue


def get_queue(request: HttpRequest, cluster: Cluster, name: str) -> Queue:
    """The queue of that name if the person may see it, else Http404."""
    seen = visible_queues(request.user).filter(cluster=cluster)
    return get_object_or_404(seen.select_related("cluster", "parent"), name=name)


def may_divide(request: HttpRequest, queue: Queue) -> bool:
    return dividable_queues(request.user).filter(pk=queue.pk).exists()


def may_edit_queue(user: Any, queue: Queue) -> bool:
    """Its name, place and policy: whoever divides its parent."""
    return dividable_queues(user).filter(children=queue).exists()


def crumbs(request: HttpRequest, queue: Queue) -> list[Queue]:
    """The queues from the highest one down to ``queue``, the root only when it is the page's own."""
    parts = queue.path.split("/")
    paths = ["/".join(parts[: i + 1]) for i in range(len(parts))]
    seen = visible_queues(request.user).filter(cluster=queue.cluster, path__in=paths)
    return sorted(seen, key=lambda q: len(q.path))
