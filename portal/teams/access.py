"""What a person may see and touch: querysets narrowed to the user. To authorise is to fetch.

A member sees the whole subtree of their teams' queues and the queues above it (names and figures, not
the workloads). Operators see everything; who is not signed in, or in no team, sees nothing.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from portal.teams.rights import Person, rights_of
from scheduling.models import Cluster, Queue, QuotaChange, Workload
from scheduling.models.queues import above, below

NOTHING = Q(pk__in=[])


def is_operator(user: Person) -> bool:
    """May see and operate every cluster."""
    return rights_of(user).operates


def subtrees(user: Person, *, strictly: bool = False, **persona: bool) -> Q:
    """Queues below (or, unless ``strictly``, at) those of the teams where the persona has the flags."""
    condition = NOTHING
    for cluster_id, path in tops(user, **persona):
        condition |= below(cluster_id, path, strictly=strictly)
    return condition


def tops(user: Person, **persona: bool) -> list[tuple[int, str]]:
    """(cluster, path) of the queues of the user's teams; the path of a root is empty."""
    return rights_of(user).tops(**persona)


def visible_clusters(user: Person) -> QuerySet[Cluster]:
    if is_operator(user):
        return Cluster.objects.all()
    return Cluster.objects.filter(pk__in={cluster_id for cluster_id, _ in tops(user)})


def own_queues(user: Person, **persona: bool) -> QuerySet[Queue]:
    """Queues whose workloads the user may see; with flags, where the persona also grants those."""
    if is_operator(user):
        return Queue.objects.all()
    return Queue.objects.filter(subtrees(user, **persona))


def visible_queues(user: Person) -> QuerySet[Queue]:
    """Own subtrees and every queue above them."""
    if is_operator(user):
        return Queue.objects.all()
    higher = NOTHING
    for cluster_id, path in tops(user):
        higher |= above(cluster_id, path)
    return Queue.objects.filter(subtrees(user) | higher)


def visible_workloads(user: Person) -> QuerySet[Workload]:
    """Workloads of the user's queues, and their own wherever they run (misrouted ones too)."""
    if is_operator(user):
        return Workload.objects.all()
    own = Queue.objects.filter(subtrees(user))
    return Workload.objects.filter(Q(queue__in=own) | (Q(user=user.get_username()) & ~Q(user="")))


def dividable_queues(user: Person) -> QuerySet[Queue]:
    """Queues whose children's quotas the user may edit: those of teams they lead and all below."""
    return own_queues(user, may_edit_quotas=True)


def editable_queues(user: Person) -> QuerySet[Queue]:
    """Queues whose own quotas the user may edit: strictly below teams they lead; operators all."""
    if is_operator(user):
        return Queue.objects.exclude(parent=None)
    return Queue.objects.filter(subtrees(user, strictly=True, may_edit_quotas=True))


def visible_cells(user: Person, change: QuotaChange) -> list[dict[str, Any]]:
    """The lines of a change that are about queues the user sees; others' figures stay theirs."""
    seen = visible_queues(user).filter(cluster_id=change.cluster_id)
    names = set(seen.values_list("name", flat=True))
    return [cell for cell in change.cells if cell["queue"] in names]


def submittable_queues(user: Person) -> QuerySet[Queue]:
    """Leaves into which the user may submit."""
    return Queue.objects.filter(subtrees(user, may_submit=True), children=None)


def may_operate_workload(user: Person, workload: Workload) -> bool:
    """Own work, work below a queue whose quotas the user edits, or any as operator."""
    if is_operator(user) or (workload.user and workload.user == user.get_username()):
        return True
    return workload.queue_id is not None and (
        Queue.objects.filter(subtrees(user, may_edit_quotas=True), pk=workload.queue_id).exists()
    )
