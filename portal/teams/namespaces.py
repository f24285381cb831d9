"""Which namespace a person may give a queue: whoever works in a queue gets rights in its namespace."""

from __future__ import annotations

from django.db.models import Q

from portal.accounts.models import User
from portal.teams.access import dividable_queues, is_admin
from scheduling.models import Queue
from scheduling.services.clusters.discovery import has_namespace, what_stands
from scheduling.services.errors import ServiceError
from scheduling.services.queues.tree import offering

PREFIX = "weir-"
"""Begins the namespaces that queues get without an admin."""


def made_for(name: str) -> str:
    """The namespace that a queue called ``name`` may have without an admin.

    >>> made_for("vision")
    'weir-vision'
    """
    return PREFIX + name


def judge(author: User, queue: Queue, taking: str = "") -> None:
    """Raises ServiceError at ``namespace`` unless ``author`` may give ``queue`` the one it now has.

    An admin may name any; of one that stands on the cluster and is no queue's they are shown first what
    becomes of it, and ``taking`` says that they were. Others may name one that the queues they divide, or
    those below, hold already, or ``made_for`` the queue's name, where neither a queue nor the cluster has a
    namespace of that name.
    """
    if is_admin(author):
        _show_what_stands(queue, taking)
        return
    if queue.namespace in (own := _own(author, queue)):
        return
    if queue.namespace != made_for(queue.name):
        choices = ", ".join([*own, made_for(queue.name)])
        raise ServiceError(
            "not_your_namespace",
            "You may not give a queue that namespace.",
            f"Choose {choices}, or leave it empty. An admin can give the queue another namespace.",
            field="namespace",
        )
    if _is_taken(queue):
        raise ServiceError(
            "namespace_taken",
            f"The namespace {queue.namespace} is taken.",
            "Choose another name for the queue, or ask an admin for the namespace.",
            field="namespace",
        )


def _show_what_stands(queue: Queue, taking: str) -> None:
    """Raises ServiceError ``namespace_stands`` with what taking it would do, unless that was shown."""
    name = queue.namespace
    others = Queue.objects.filter(cluster=queue.cluster, namespace=name).exclude(pk=queue.pk)
    if taking == name or others.exists():
        return
    found = what_stands(queue.cluster, name)
    if found is None:
        return
    raise ServiceError(
        "namespace_stands",
        f"The namespace {name} stands on the cluster with {found}. As this queue's, {_becomes(queue)}",
        f"Look at what runs there and offer it ({offering(name)}); then say so with taking: {name}.",
        field="namespace",
    )


def _becomes(queue: Queue) -> str:
    who = f"the group {queue.access_group} and people" if queue.access_group else "people"
    level = queue.pod_security or "baseline"
    return (
        f"{who} of its team get the role weir-member there: they make pods, which read the Secrets that it "
        f"names, and write its ConfigMaps and volume claims. Pod Security {level} is enforced on every pod "
        "that starts there, a ResourceQuota bounds all its pods together, GPU work without a queue is "
        "refused, and pods run as the service account default or as one that the namespace names."
    )


def _own(author: User, queue: Queue) -> list[str]:
    mine = dividable_queues(author).filter(cluster=queue.cluster)
    near = Queue.objects.filter(Q(pk__in=mine) | Q(parent__in=mine)).exclude(pk=queue.pk)
    return sorted(set(near.exclude(namespace="").values_list("namespace", flat=True)))


def _is_taken(queue: Queue) -> bool:
    """What stands on the cluster under that name is not Weir's to give away, whoever made it."""
    others = Queue.objects.filter(cluster=queue.cluster, namespace=queue.namespace)
    return others.exclude(pk=queue.pk).exists() or has_namespace(queue.cluster, queue.namespace)
