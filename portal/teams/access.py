"""What a person may see and touch: querysets narrowed to the user. To authorise is to fetch.

A member sees the whole subtree of their teams' queues and the queues above it (names and figures, not
the workloads). Operators see everything.
"""

from __future__ import annotations

from django.db.models import Q, QuerySet

from portal.accounts.models import Persona, User
from scheduling.models import Cluster, Queue, Workload


def is_operator(user: User) -> bool:
    return (
        user.is_superuser
        or Persona.objects.filter(memberships__user=user, may_operate=True).exists()
    )


def subtrees(user: User, **persona: bool) -> Q:
    """Queues below (or at) those of the user's teams where the persona has the given flags."""
    flags = {f"persona__{name}": value for name, value in persona.items()}
    tops = user.memberships.filter(**flags).values_list(
        "team__queue__cluster_id", "team__queue__path"
    )
    condition = Q(pk__in=[])
    for cluster_id, path in tops:
        condition |= _subtree(cluster_id, path)
    return condition


def _subtree(cluster_id: int, path: str) -> Q:
    if not path:
        return Q(cluster_id=cluster_id)
    return Q(cluster_id=cluster_id) & (Q(path=path) | Q(path__startswith=f"{path}/"))


def visible_clusters(user: User) -> QuerySet[Cluster]:
    if is_operator(user):
        return Cluster.objects.all()
    return Cluster.objects.filter(queues__team__memberships__user=user).distinct()


def own_queues(user: User, **persona: bool) -> QuerySet[Queue]:
    """Queues whose workloads the user may see; with flags, where the persona also grants those."""
    if is_operator(user):
        return Queue.objects.all()
    return Queue.objects.filter(subtrees(user, **persona))


def visible_queues(user: User) -> QuerySet[Queue]:
    """Own subtrees and every queue above them."""
    if is_operator(user):
        return Queue.objects.all()
    above = Q(pk__in=[])
    for cluster_id, path in user.memberships.values_list(
        "team__queue__cluster_id", "team__queue__path"
    ):
        parts = path.split("/")
        paths = ["", *("/".join(parts[:i]) for i in range(1, len(parts)))]
        above |= Q(cluster_id=cluster_id, path__in=paths)
    return Queue.objects.filter(subtrees(user) | above)


def visible_workloads(user: User) -> QuerySet[Workload]:
    """Workloads of the user's queues, and their own wherever they run (misrouted ones too)."""
    if is_operator(user):
        return Workload.objects.all()
    own = Queue.objects.filter(subtrees(user))
    return Workload.objects.filter(Q(queue__in=own) | Q(user=user.get_username()))


def editable_queues(user: User) -> QuerySet[Queue]:
    """Queues whose quotas the user may edit: strictly below those of teams they lead; operators all."""
    if is_operator(user):
        return Queue.objects.exclude(parent=None)
    led = user.memberships.filter(persona__may_edit_quotas=True)
    return Queue.objects.filter(subtrees(user, may_edit_quotas=True)).exclude(
        pk__in=led.values("team__queue_id")
    )


def submittable_queues(user: User) -> QuerySet[Queue]:
    """Leaves into which the user may submit."""
    return Queue.objects.filter(subtrees(user, may_submit=True), children=None)


def may_operate_workload(user: User, workload: Workload) -> bool:
    """Own work, work below a queue whose quotas the user edits, or any as operator."""
    if workload.user == user.get_username() or is_operator(user):
        return True
    return workload.queue_id is not None and (
        Queue.objects.filter(subtrees(user, may_edit_quotas=True), pk=workload.queue_id).exists()
    )
