"""What a person may see and touch: querysets narrowed to the user. To authorise is to fetch.

A member sees names and figures of the whole subtree of their teams' queues and of the queues above it;
whose workloads, and what they may do to them, their personas say. A person who is not signed in, or in no
team, sees nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet

from portal.accounts.capabilities import MEANINGS, Capability, Reach
from portal.teams.rights import Grant, Person, rights_of
from scheduling.models import Cluster, Queue, QuotaChange, Workload
from scheduling.models.queues import above, below

NOTHING = Q(pk__in=[])
WIDE = (Capability.SEE, Capability.OPERATE, Capability.ADMINISTER)
"""A person who has one of them everywhere sees every cluster."""


def is_operator(user: Person) -> bool:
    """May see the nodes and the engine of every cluster, and set its mode."""
    return rights_of(user).everywhere(Capability.OPERATE)


def is_admin(user: Person) -> bool:
    """May set up clusters, classes, policy and personas."""
    return rights_of(user).everywhere(Capability.ADMINISTER)


def sees_everything(user: Person) -> bool:
    return rights_of(user).everywhere(Capability.SEE)


def places(user: Person, capability: Capability) -> Q:
    """The queues to which the user may do that."""
    strictly = MEANINGS[capability].strictly
    if rights_of(user).everywhere(capability):
        return ~Q(path="") if strictly else Q()
    return _or(_place(grant, capability) for grant in rights_of(user).holding(capability))


def dividable(user: Person) -> Q:
    """Queues whose children's quotas the user may edit: those of teams they lead and all below."""
    if rights_of(user).everywhere(Capability.EDIT_QUOTAS):
        return Q()
    return _or(_subtree(grant) for grant in rights_of(user).holding(Capability.EDIT_QUOTAS))


def _or(conditions: Iterable[Q]) -> Q:
    found = NOTHING
    for condition in conditions:
        found |= condition
    return found


def _place(grant: Grant, capability: Capability) -> Q:
    reach, strictly = grant.reach(capability), MEANINGS[capability].strictly
    if reach == Reach.SUBTREE:
        return _subtree(grant, strictly=strictly)
    if reach == Reach.TEAM and not strictly:
        return Q(cluster_id=grant.cluster_id, path=grant.path)
    return NOTHING


def _subtree(grant: Grant, *, strictly: bool = False) -> Q:
    return below(grant.cluster_id, grant.path, strictly=strictly)


def tops(user: Person, capability: Capability | None = None) -> list[tuple[int, str]]:
    """(cluster, path) of the queues of the user's teams, of those where the persona has the capability; the
    path of a root is empty."""
    return [
        (grant.cluster_id, grant.path)
        for grant in rights_of(user).grants
        if capability is None or grant.reach(capability)
    ]


def visible_clusters(user: Person) -> QuerySet[Cluster]:
    if any(rights_of(user).everywhere(capability) for capability in WIDE):
        return Cluster.objects.all()
    return Cluster.objects.filter(pk__in={cluster_id for cluster_id, _ in tops(user)})


def clusters_of(user: Person) -> list[Cluster]:
    """``visible_clusters``, read once a request: a page is of one of them, and its frame lists all."""
    return rights_of(user).once("clusters", lambda: list(visible_clusters(user)))


def own_queues(user: Person, capability: Capability | None = None) -> QuerySet[Queue]:
    """Queues whose workloads the user may see, of those where they also may do the other."""
    found = Queue.objects.filter(places(user, Capability.SEE))
    return found if capability is None else found.filter(places(user, capability))


def visible_queues(user: Person) -> QuerySet[Queue]:
    """The subtrees of the user's teams and every queue above them."""
    if any(rights_of(user).everywhere(capability) for capability in WIDE):
        return Queue.objects.all()
    higher = NOTHING
    for cluster_id, path in tops(user):
        higher |= above(cluster_id, path)
    return Queue.objects.filter(_or(map(_subtree, rights_of(user).grants)) | higher)


def team_queues(user: Person) -> QuerySet[Queue]:
    """The subtrees of the user's teams, whatever the personas say; all for whoever sees everything."""
    if sees_everything(user):
        return Queue.objects.all()
    return Queue.objects.filter(_or(map(_subtree, rights_of(user).grants)))


def visible_workloads(user: Person) -> QuerySet[Workload]:
    """Workloads of the queues whose work the user sees, and their own wherever they run (misrouted ones
    too)."""
    if sees_everything(user):
        return Workload.objects.all()
    return Workload.objects.filter(
        Q(queue__in=queues_of_own_work(user)) | (Q(user=user.get_username()) & ~Q(user=""))
    )


def queues_of_own_work(user: Person) -> QuerySet[Queue] | list[int]:
    """``own_queues`` as what a column is compared with."""
    own = own_queues(user)
    return own if sees_everything(user) else rights_of(user).queues_of(own)


def dividable_queues(user: Person) -> QuerySet[Queue]:
    """Queues whose children's quotas the user may edit: those of teams they lead and all below."""
    return Queue.objects.filter(dividable(user))


def editable_queues(user: Person) -> QuerySet[Queue]:
    """Queues whose own quotas the user may edit: strictly below teams they lead."""
    return Queue.objects.filter(places(user, Capability.EDIT_QUOTAS))


def visible_cells(user: Person, change: QuotaChange) -> list[dict[str, Any]]:
    """The lines of a change that are about queues the user sees; others' figures stay theirs."""
    seen = visible_queues(user).filter(cluster_id=change.cluster_id)
    names = set(seen.values_list("name", flat=True))
    return [cell for cell in change.cells if cell["queue"] in names]


def submittable_queues(user: Person) -> QuerySet[Queue]:
    """Leaves into which the user may submit."""
    return Queue.objects.filter(places(user, Capability.SUBMIT), children=None)


def may_operate_workload(user: Person, workload: Workload) -> bool:
    """Own work, and that of queues where the persona lets them act on it."""
    if rights_of(user).everywhere(Capability.ACT):
        return True
    if workload.user and workload.user == user.get_username():
        return True
    return workload.queue is not None and rights_of(user).covers(Capability.ACT, workload.queue)


def operable(user: Person, workloads: Iterable[Workload]) -> set[int]:
    """Ids of those that ``may_operate_workload`` allows, asked for all at once."""
    workloads = list(workloads)
    if rights_of(user).everywhere(Capability.ACT):
        return {work.pk for work in workloads}
    queues = {work.queue_id for work in workloads if work.queue_id is not None}
    acted = Queue.objects.filter(places(user, Capability.ACT), pk__in=queues)
    led = set(acted.values_list("pk", flat=True))
    name = user.get_username()
    return {work.pk for work in workloads if work.user == name or work.queue_id in led}
