"""Finds a queue, a workload or a person within what the asker may see."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts.models import User
from portal.teams.access import visible_queues, visible_workloads
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from scheduling.models import Cluster, Queue, Workload

LIMIT = 6


@dataclass(frozen=True)
class Hits:
    queues: list[Queue]
    workloads: list[Workload]
    users: list[str]

    @property
    def count(self) -> int:
        return len(self.queues) + len(self.workloads) + len(self.users)

    @property
    def is_cut(self) -> bool:
        return max(len(self.queues), len(self.workloads), len(self.users)) == LIMIT

    def __bool__(self) -> bool:
        return bool(self.queues or self.workloads or self.users)


def find(cluster: Cluster, user: User, text: str) -> Hits:
    """At most six of each kind whose name holds ``text``; newest workloads first."""
    if not text:
        return Hits([], [], [])
    queues = visible_queues(user).filter(cluster=cluster, path__icontains=text)
    workloads = visible_workloads(user).filter(cluster=cluster)
    users = workloads.filter(user__icontains=text).order_by("user").values_list("user", flat=True)
    named = workloads.filter(name__icontains=text).select_related("queue")
    return Hits(
        list(queues.order_by("path")[:LIMIT]),
        list(named.order_by("-submitted_at")[:LIMIT]),
        list(users.distinct()[:LIMIT]),
    )


@page_view
def search(request: PersonRequest, cluster: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    text = request.GET.get("q", "").strip()[:100]
    context = {"text": text, "found": find(found, request.user, text)}
    template = "search_results" if request.htmx else "search"
    return render(request, f"web/{template}.html", context)
