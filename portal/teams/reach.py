"""Among what a person may choose when work of theirs is to start sooner: queues and priority classes."""

from __future__ import annotations

from functools import cache, partial

from portal.accounts.models import User
from portal.teams.access import submittable_queues
from portal.teams.submission import usable_priority_classes
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.explain import sooner
from scheduling.services.explain.sooner import Reach


def reach_of(person: User, cluster: Cluster) -> Reach:
    queues = list(submittable_queues(person).filter(cluster=cluster).select_related("cluster"))
    classes = {one.name for queue in queues for one in usable_priority_classes(person, queue)}
    return Reach([queue.name for queue in queues], sorted(classes))


def plan_for_owners(cluster: Cluster) -> int:
    """What would start work that waits, within what its owner may choose; how many were planned. Raises
    ServiceError where the cluster does not answer."""
    people = User.objects.filter(is_active=True).values("username")
    return sooner.refresh(cluster, cache(partial(_of_name, cluster)), people)


def plan_for_all_owners() -> None:
    for cluster in Cluster.objects.all():
        try:
            plan_for_owners(cluster)
        except ServiceError as error:
            sooner.log.info("cluster %s, what would start sooner: %s", cluster.name, error)


def _of_name(cluster: Cluster, name: str) -> Reach:
    """Nobody's work may stay in its queue alone."""
    person = User.objects.filter(username=name, is_active=True).first()
    return reach_of(person, cluster) if person else Reach()
