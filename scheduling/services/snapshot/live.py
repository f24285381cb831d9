"""The live Snapshot for somebody who asks, and hears it in words where the cluster does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes.config import ConfigException

from scheduling.cluster.connection.client import ApiError
from scheduling.engine import model as m
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.snapshot import build as snapshots

REMEDY = "Try again in a moment."


def live_or_refused(cluster: Cluster, remedy: str = REMEDY) -> m.Snapshot:
    """Raises ServiceError ``cluster_unreachable``."""
    with told_when_unreachable(cluster, remedy):
        return snapshots.live(cluster)


@contextmanager
def told_when_unreachable(cluster: Cluster, remedy: str = REMEDY) -> Iterator[None]:
    """Raises ServiceError ``cluster_unreachable`` where what is done within meets no answer."""
    try:
        yield
    except (ApiError, ConfigException, OSError) as error:
        raise ServiceError(
            "cluster_unreachable", f"Cluster {cluster.name} does not answer.", remedy
        ) from error
