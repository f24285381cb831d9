"""The live Snapshot for somebody who asks, and hears it in words where the cluster does not answer."""

from __future__ import annotations

from kubernetes.config import ConfigException

from scheduling.cluster.connection.client import ApiError
from scheduling.engine import model as m
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.snapshot import build as snapshots


def live_or_refused(cluster: Cluster) -> m.Snapshot:
    """Raises ServiceError ``cluster_unreachable``."""
    try:
        return snapshots.live(cluster)
    except (ApiError, ConfigException, OSError) as error:
        raise ServiceError(
            "cluster_unreachable",
            f"Cluster {cluster.name} does not answer.",
            "Try again in a moment.",
        ) from error
