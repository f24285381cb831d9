"""Which entries of the audit log a person may read, narrowed by what they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.functional import cached_property

from portal.accounts.capabilities import Capability
from portal.audit.kinds import GROUPS, KINDS
from portal.audit.models import AuditEntry, Via
from portal.teams.access import places
from portal.teams.rights import Person, rights_of
from scheduling.models import Queue

DAYS = (1, 7, 30, 90, 365)
MOST_LETTERS = 100


def may_audit(user: Person) -> bool:
    rights = rights_of(user)
    return rights.everywhere(Capability.AUDIT) or any(rights.holding(Capability.AUDIT))


def visible_entries(user: Person) -> QuerySet[AuditEntry]:
    """All for whoever audits everything; else those about the queues where the person audits."""
    if rights_of(user).everywhere(Capability.AUDIT):
        return AuditEntry.objects.all()
    found = Q(pk__in=[])
    queues = Queue.objects.filter(places(user, Capability.AUDIT)).select_related("cluster")
    by_cluster: dict[str, list[str]] = {}
    for queue in queues:
        by_cluster.setdefault(queue.cluster.name, []).append(queue.path)
    for cluster, paths in by_cluster.items():
        found |= Q(cluster=cluster, queue__in=paths) & ~Q(queue="")
    return AuditEntry.objects.filter(found)


def audited_paths(user: Person) -> list[str]:
    """Of queues whose log the person reads, in order; of several clusters those of one path are one."""
    queues = Queue.objects.exclude(path="")
    if not rights_of(user).everywhere(Capability.AUDIT):
        queues = queues.filter(places(user, Capability.AUDIT))
    return list(queues.order_by("path").values_list("path", flat=True).distinct())


@dataclass(frozen=True)
class AuditQuery:
    """What a reader asks for, as the address holds it; what makes no sense is passed over."""

    query: Mapping[str, str]

    @cached_property
    def days(self) -> int:
        text = self.query.get("days", "")
        return int(text) if text in map(str, DAYS) else 30

    @property
    def who(self) -> str:
        return self._text("who")

    @property
    def find(self) -> str:
        return self._text("q")

    @property
    def group(self) -> str:
        return self._one_of("what", GROUPS)

    @property
    def where(self) -> str:
        """Path of a queue: of it and all below."""
        return self._text("where")

    @property
    def via(self) -> str:
        return self._one_of("by", Via.values)

    @property
    def refused(self) -> bool:
        return self.query.get("refused") == "1"

    @property
    def before(self) -> int | None:
        text = self.query.get("before", "")
        return int(text) if text.isdecimal() and len(text) < 18 else None

    def _text(self, name: str) -> str:
        return self.query.get(name, "").replace("\0", "").strip()[:MOST_LETTERS]

    def _one_of(self, name: str, known: Any) -> str:
        text = self.query.get(name, "")
        return text if text in known else ""

    def of(self, entries: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Without ``before``: that only says where a page begins."""
        since = datetime.now(UTC) - timedelta(days=self.days)
        found = entries.filter(at__gte=since)
        if self.who:
            found = found.filter(actor=self.who)
        if self.group:
            kinds = [name for name, kind in KINDS.items() if kind.group == self.group]
            found = found.filter(kind__in=kinds)
        if self.where:
            below = Q(queue=self.where) | Q(queue__startswith=f"{self.where}/")
            found = found.filter(below)
        if self.via:
            found = found.filter(via=self.via)
        if self.refused:
            found = found.filter(refused=True)
        return found.filter(self._about()) if self.find else found

    def _about(self) -> Q:
        text = self.find
        return (
            Q(subject__icontains=text)
            | Q(actor__icontains=text)
            | Q(queue__icontains=text)
            | Q(reason__icontains=text)
            | Q(address__icontains=text)
            | Q(digest__startswith=text.lower())
        )
