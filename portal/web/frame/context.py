"""What every page's frame shows: cluster, mode, last cycle, clock, menu, person.

Everything is read on first use, so fragments and pages without the frame cost no query.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property

from portal.accounts.models import User
from portal.display.units import gpus_each
from portal.notices.inbox import unread
from portal.teams.access import clusters_of, is_operator
from portal.teams.factors import asked_of, must_have
from portal.web.frame.division import last_cycle
from portal.web.frame.menu import Section, begin, menu_facts, sections
from portal.web.frame.revision_cache import remembered
from scheduling.models import Cluster, Cycle, GpuClass
from scheduling.services.starts.accuracy import held_of
from scheduling.services.starts.tell import Held

THEMES = ("light", "dark")
STALE_CYCLES, STALE_S = 4, 60.0
"""A plan older than this many cycle intervals, and seconds, is shown as stale: a loaded machine that is some
seconds late is no outage, and nobody can do anything about it."""


def stale_after_s(cluster: Cluster) -> float:
    """Real seconds without a plan after which people are told."""
    return max(STALE_S, STALE_CYCLES * cluster.cycle_interval_s)


class Shell:
    """The frame of one request."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request

    @property
    def signed_in(self) -> bool:
        user = getattr(self.request, "user", None)
        return bool(user and user.is_authenticated)

    @property
    def theme(self) -> str:
        theme = self.request.COOKIES.get("theme", "")
        return theme if theme in THEMES else ""

    @property
    def is_fragment(self) -> bool:
        """The page refreshes itself: it has its frame already."""
        return "X-Weir-Live" in self.request.headers

    @cached_property
    def clusters(self) -> list[Cluster]:
        return clusters_of(self.request.user) if self.signed_in else []

    @cached_property
    def cluster(self) -> Cluster | None:
        """The cluster in the address; on pages of no cluster the first the person sees."""
        known: Cluster | None = getattr(self.request, "cluster", None)
        if known is not None:
            return known
        match = self.request.resolver_match
        name = match.kwargs.get("cluster") if match else None
        if name is None:
            return self.clusters[0] if self.clusters else None
        return next((c for c in self.clusters if c.name == name), None)

    @cached_property
    def now(self) -> datetime:
        return self.cluster.now() if self.cluster else timezone.now()

    @property
    def zone(self) -> str:
        own = getattr(self.request.user, "display_time_zone", "") if self.signed_in else ""
        return own or (self.cluster.display_time_zone if self.cluster else "UTC")

    @cached_property
    def total_gpus(self) -> float:
        """Physical GPUs of the cluster, milli-GPU."""
        if self.cluster is None:
            return 0.0
        return remembered.of(self.cluster, "installed", self._installed)

    def _installed(self) -> float:
        classes = GpuClass.objects.filter(cluster=self.cluster)
        return float(
            sum(
                gpus_each(c) * (c.installed or 0)
                for c in classes.annotate(installed=Sum("nodes__gpus"))
            )
        )

    @cached_property
    def cycle(self) -> Cycle | None:
        return last_cycle(self.cluster) if self.cluster else None

    @property
    def stale_after_s(self) -> float:
        return stale_after_s(self.cluster) if self.cluster else 0

    @property
    def is_stale(self) -> bool:
        planned = self.cluster.planned_at if self.cluster else None
        return planned is None or timezone.now() - planned > timedelta(seconds=self.stale_after_s)

    @property
    def operates(self) -> bool:
        return is_operator(self.request.user)

    @property
    def factor_asked_of(self) -> str:
        """Whom the installation asks for a second factor, in words; empty where nobody."""
        return asked_of()

    @cached_property
    def factor_asked(self) -> bool:
        """Whether it asks the person."""
        user = self.request.user
        return user.is_authenticated and must_have(user)

    @cached_property
    def hit_rates(self) -> Held:
        """How forecasts of starts have held of late, by class and how far ahead."""
        cluster = self.cluster
        if cluster is None:
            return {}
        return remembered.lasting(cluster, "held", lambda: held_of(cluster, self.now))

    @cached_property
    def unread(self) -> int:
        """Notices that the person has not read."""
        return unread(self.request.user) if isinstance(self.request.user, User) else 0

    @cached_property
    def may_submit(self) -> bool:
        cluster = self.cluster
        return cluster is not None and menu_facts(self.request.user, cluster).may_submit

    @cached_property
    def sections(self) -> list[Section]:
        if self.cluster is None:
            return begin(self.request)
        return sections(self.request, self.cluster)


def shell(request: HttpRequest) -> dict[str, Any]:
    """One frame a request, however many templates make up its page."""
    if not hasattr(request, "shell"):
        request.shell = Shell(request)  # type: ignore[attr-defined]
    return {"shell": request.shell}  # type: ignore[attr-defined]
