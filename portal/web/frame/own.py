"""What of a cluster is a person's own by name, and not by rights that others have too."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

from django.db.models import Count, Exists, QuerySet, Subquery

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.approvals.inbox import needing, to_decide, waiting_in
from portal.teams.access import sees_everything
from portal.teams.rights import Person, rights_of
from portal.web.frame.revision_cache import remembered
from scheduling.models import Cluster, Eviction, Workload
from scheduling.models.workloads import State


@dataclass(frozen=True)
class OwnFacts:
    work: int
    """Not finished, in whatever queue."""
    requests: int
    """Requests that wait for the person."""


def own_facts(user: Person, cluster: Cluster) -> OwnFacts:
    """Read once a revision. One query, and one more for all people where requests wait for anybody."""
    if not isinstance(user, User):
        return OwnFacts(0, 0)
    key = ("own", user.pk, rights_of(user).sight)
    return remembered.of(cluster, key, lambda: _read(user, cluster))


def _read(user: User, cluster: Cluster) -> OwnFacts:
    mine = _unfinished(user, cluster).order_by().values("cluster").annotate(n=Count("pk"))
    work, waits = (
        Cluster.objects.filter(pk=cluster.pk)
        .values_list(Subquery(mine.values("n")), Exists(waiting_in(cluster)))
        .get()
    )
    open_ = remembered.of(cluster, "requests", lambda: to_decide(cluster)) if waits else []
    return OwnFacts(work or 0, len(needing(user, open_)))


def _work_of(user: User, cluster: Cluster) -> QuerySet[Workload]:
    return Workload.objects.filter(cluster=cluster, user=user.get_username())


def _unfinished(user: User, cluster: Cluster) -> QuerySet[Workload]:
    return _work_of(user, cluster).exclude(state=State.FINISHED)


def sight_in(user: User, cluster: Cluster) -> Hashable:
    """The same for two people who see the same work of the cluster and may read the same of it."""
    key = ("beyond", user.pk, rights_of(user).sight)
    beyond = remembered.of(cluster, key, lambda: _sees_own_beyond(user, cluster))
    return rights_of(user).sight, user.pk if beyond else None


def _sees_own_beyond(user: User, cluster: Cluster) -> bool:
    """Whether they see work, or an eviction, only because it is theirs. Two queries."""
    if sees_everything(user):
        return False
    sees = partial(_sees_work, user, cluster)
    paths = _unfinished(user, cluster).order_by().values_list("queue__path", flat=True).distinct()
    if not all(map(sees, paths)):
        return True
    # It may have been evicted in a queue that it has left.
    evicted = Eviction.objects.filter(workload__in=_work_of(user, cluster)).order_by()
    pairs = evicted.values_list("queue__path", "for_queue__path").distinct()
    return not all(any(map(sees, pair)) for pair in pairs)


def _sees_work(user: User, cluster: Cluster, path: str | None) -> bool:
    rights = rights_of(user)
    return path is not None and bool(rights.granting(Capability.SEE, cluster.pk, path))
