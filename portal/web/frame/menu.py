"""The side bar: which pages exist, and which of them this person may open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from portal.accounts.capabilities import Capability
from portal.approvals.loans.who import leads_in
from portal.audit.reading import may_audit
from portal.teams.access import is_admin, is_operator
from portal.teams.reading import Reading
from portal.teams.rights import Person, rights_of
from portal.web.frame.division import tree_of
from portal.web.frame.own import own_facts
from portal.web.frame.revision_cache import remembered
from scheduling.models import Cluster, ClusterMode, Queue


@dataclass(frozen=True)
class MenuEntry:
    label: str
    icon: str
    url: str
    current: bool
    count: int | None = None


@dataclass(frozen=True)
class Section:
    title: str
    entries: list[MenuEntry]


@dataclass(frozen=True)
class MenuFacts:
    """What the menu says of queues to all who have the same rights."""

    queues: int
    quota_queue: str
    """The queue whose children the person divides, the highest of them; empty where there is none."""
    may_submit: bool


def menu_facts(user: Person, cluster: Cluster) -> MenuFacts:
    """Read once a revision, from the tree of queues."""
    key = ("menu", rights_of(user).sight)
    return remembered.of(cluster, key, lambda: _read(user, tree_of(cluster)))


def _read(user: Person, tree: Sequence[Queue]) -> MenuFacts:
    rights, reading, inner = rights_of(user), Reading(user), {queue.parent_id for queue in tree}
    name_of = {queue.pk: queue.name for queue in tree}
    divided = (q for q in tree if q.parent_id and rights.covers(Capability.EDIT_QUOTAS, q))
    first = next(divided, None)
    return MenuFacts(
        queues=sum(not q.is_root and reading.sees_queue(q.cluster_id, q.path) for q in tree),
        quota_queue=name_of[first.parent_id] if first and first.parent_id else "",
        may_submit=any(q.pk not in inner and rights.covers(Capability.SUBMIT, q) for q in tree),
    )


class _Menu:
    def __init__(self, request: HttpRequest, cluster: Cluster) -> None:
        self.user = request.user
        self.known = menu_facts(request.user, cluster)
        self.own = own_facts(request.user, cluster)
        self.path = request.path
        self.cluster = cluster
        # A workload's page belongs to whose work it is: one's own below one's work, others' below queues.
        self.is_others_work = not getattr(request, "is_own_work", True)

    def entry(
        self,
        label: str,
        icon: str,
        name: str,
        *args: str,
        below: tuple[str, ...] = (),
        count: int | None = None,
    ) -> Iterator[MenuEntry]:
        """The entry of one page; nothing when this installation has no such page.

        ``below`` are the folders of the address under which the entry stays marked.
        """
        try:
            url = reverse(name, args=[self.cluster.name, *args])
        except NoReverseMatch:
            return
        inside = any(self.path.startswith(f"/c/{self.cluster.name}/{folder}/") for folder in below)
        yield MenuEntry(label, icon, url, current=inside or self.path == url, count=count)

    def set_up(self) -> Iterator[MenuEntry]:
        """Until a cluster is enforced for the first time."""
        if self.cluster.mode == ClusterMode.OBSERVE and is_admin(self.user):
            inside = self.path.startswith("/set-up/")
            yield MenuEntry("Set-up", "list", reverse("web:set_up"), current=inside)

    def work(self) -> Iterator[MenuEntry]:
        below = ("work",) if self.is_others_work else ("work", "w")
        yield from self.entry("Overview", "home", "web:overview")
        yield from self.entry("My work", "list", "web:my_work", below=below, count=self.own.work)
        if self.known.may_submit:
            yield from self.entry("Submit", "plus", "web:submit")

    def sharing(self) -> Iterator[MenuEntry]:
        below = ("queues", "w") if self.is_others_work else ("queues",)
        yield from self.entry("Queues", "tree", "web:queues", below=below, count=self.known.queues)
        if queue := self.known.quota_queue:
            yield from self.entry("Quotas", "sliders", "web:quotas", queue, below=("quotas",))
        yield from self.entry(
            "Requests",
            "inbox",
            "web:requests",
            below=("requests",),
            count=self.own.requests or None,
        )
        if is_operator(self.user) or leads_in(self.user, self.cluster):
            yield from self.entry("Loans", "swap", "web:loans", below=("loans",))
        inside = self.path.startswith(("/teams/", "/people/", "/personas/"))
        yield MenuEntry("Teams", "people", reverse("web:teams"), current=inside)

    def operating(self) -> Iterator[MenuEntry]:
        yield from self.entry("Reports", "chart", "reports:utilization", below=("reports",))
        below = ("studies", "what-if", "capacity", "start-forecasts", "adapting")
        first = "web:studies" if is_operator(self.user) else "web:start_forecasts"
        yield from self.entry("Policy lab", "flask", first, below=below)
        yield from self.entry("Nodes", "nodes", "web:nodes", below=("nodes", "consolidation"))
        if is_operator(self.user):
            inside = ("cluster", "policy", "cycles")
            yield from self.entry("Engine", "server", "web:cluster", below=inside)
        if self.cluster.mode != ClusterMode.OBSERVE and is_admin(self.user):
            at = reverse("web:set_up_step", args=["classes"])
            url = f"{at}?cluster={self.cluster.name}"
            yield MenuEntry("Classes, prices", "sliders", url, self.path == at)
        if is_operator(self.user) or leads_in(self.user, self.cluster):
            yield from self.entry("Alerts", "bell", "web:alerts", below=("alerts",))
        if may_audit(self.user):
            yield MenuEntry("Audit log", "list", reverse("web:audit"), self.path == "/audit/")


def sections(request: HttpRequest, cluster: Cluster) -> list[Section]:
    """The menu of ``cluster`` for the person, sections without a page left out."""
    menu = _Menu(request, cluster)
    parts = [
        Section("", [*menu.set_up(), *menu.work()]),
        Section("Sharing", list(menu.sharing())),
        Section("Operating", list(menu.operating())),
    ]
    return [section for section in parts if section.entries]


def begin(request: HttpRequest) -> list[Section]:
    """The menu while there is no cluster: for whoever administers, the way to one."""
    user = getattr(request, "user", None)
    if user is None or not is_admin(user):
        return []
    path = request.path
    entries = [
        MenuEntry("Set-up", "list", reverse("web:set_up"), path.startswith("/set-up/")),
        MenuEntry("Teams", "people", reverse("web:teams"), path.startswith("/teams/")),
    ]
    return [Section("", entries)]
