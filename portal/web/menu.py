"""The side bar: which pages exist, and which of them this person may open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from portal.teams.access import editable_queues, is_operator, submittable_queues, visible_queues
from scheduling.models import Cluster, Queue, Workload
from scheduling.models.workloads import State


@dataclass(frozen=True)
class Entry:
    label: str
    icon: str
    url: str
    current: bool
    count: int | None = None


@dataclass(frozen=True)
class Section:
    title: str
    entries: list[Entry]


class _Menu:
    def __init__(self, request: HttpRequest, cluster: Cluster) -> None:
        self.user = request.user
        self.path = request.path
        self.cluster = cluster

    def entry(
        self,
        label: str,
        icon: str,
        name: str,
        *args: str,
        below: str = "",
        count: int | None = None,
    ) -> Iterator[Entry]:
        """The entry of one page; nothing when this installation has no such page.

        ``below`` is a folder of the address under which the entry stays marked.
        """
        try:
            url = reverse(name, args=[self.cluster.name, *args])
        except NoReverseMatch:
            return
        inside = bool(below) and self.path.startswith(f"/c/{self.cluster.name}/{below}/")
        yield Entry(label, icon, url, current=inside or self.path == url, count=count)

    def own_work(self) -> int:
        mine = Workload.objects.filter(cluster=self.cluster, user=self.user.get_username())
        return mine.exclude(state=State.FINISHED).count()

    def may_submit(self) -> bool:
        return submittable_queues(self.user).filter(cluster=self.cluster).exists()

    def quota_queue(self) -> Queue | None:
        """The queue whose children the person divides; the highest of them."""
        editable = editable_queues(self.user).filter(cluster=self.cluster)
        top = editable.select_related("parent").order_by("path").first()
        return top.parent if top else None

    def work(self) -> Iterator[Entry]:
        yield from self.entry("Overview", "home", "web:overview")
        yield from self.entry("My work", "list", "web:my_work", below="w", count=self.own_work())
        if self.may_submit():
            yield from self.entry("Submit", "plus", "web:submit")

    def sharing(self) -> Iterator[Entry]:
        queues = visible_queues(self.user).filter(cluster=self.cluster, parent__isnull=False)
        yield from self.entry("Queues", "tree", "web:queues", below="queues", count=queues.count())
        if (queue := self.quota_queue()) is not None:
            yield from self.entry("Quotas", "sliders", "web:quotas", queue.name, below="quotas")

    def operating(self) -> Iterator[Entry]:
        yield from self.entry("Reports", "chart", "reports:utilization", below="reports")
        if is_operator(self.user):
            yield from self.entry("Cluster", "server", "web:cluster")


def sections(request: HttpRequest, cluster: Cluster) -> list[Section]:
    """The menu of ``cluster`` for the person, sections without a page left out."""
    menu = _Menu(request, cluster)
    parts = [
        Section("", list(menu.work())),
        Section("Sharing", list(menu.sharing())),
        Section("Operating", list(menu.operating())),
    ]
    return [section for section in parts if section.entries]
