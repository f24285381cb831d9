"""An engine looks at the leases of its clusters before it loads the rest of itself.

The lease of an engine that died is taken when it stood still for its whole time before the eyes of the next
one. What that one has to load until its first cycle takes half as long, so the time runs meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise

from django.db import DatabaseError, connection
from kubernetes.config import ConfigException

from scheduling.cluster.connection.client import ApiError
from scheduling.models import Cluster, ClusterMode
from scheduling.services.clusters.connection import look_early
from scheduling.services.worker.consuming import is_for_clusters, is_served

log = logging.getLogger(__name__)

OPTIONS = "-Q", "--queues"


def begin(words: Sequence[str]) -> None:
    """In a thread, where ``words`` of a Celery command start an engine."""
    if is_for_clusters(queues_of(words)):
        threading.Thread(target=_apart, name="first-look", daemon=True).start()


def queues_of(words: Sequence[str]) -> Iterator[str]:
    """Celery says what a worker consumes only when everything is loaded."""
    split = [part for word in words for part in word.split("=", 1)]
    for option, named in pairwise(split):
        if option in OPTIONS:
            yield from named.split(",")


def _apart() -> None:
    try:
        look_at_all()
    finally:
        connection.close()


def look_at_all() -> None:
    """One cluster after the other; a cycle looks again at one that does not answer."""
    try:
        enforced = Cluster.objects.filter(mode=ClusterMode.ENFORCE).order_by("pk")
        for cluster in filter(lambda one: is_served(one.name), enforced):
            _look(cluster)
    except DatabaseError as error:
        log.info("clusters cannot be read yet: %s", error)


def _look(cluster: Cluster) -> None:
    try:
        look_early(cluster)
    except (ApiError, ConfigException, OSError) as error:
        log.info("the lease of %s cannot be looked at yet: %s", cluster.name, error)
