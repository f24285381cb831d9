"""Where the GPUs of a cluster are measured: tried before it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from scheduling.cluster.metrics import MetricsError, Prometheus, read
from scheduling.models import Cluster
from scheduling.models.credentials import keep
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.workloads.measure import read_token

TRIED_S = 5.0


@dataclass(frozen=True, slots=True)
class Scrape:
    """What an address tells now: GPUs that are measured, and the pods that hold them."""

    gpus: int
    pods: int


def try_source(url: str, token: str = "", activity: str = "") -> Scrape:
    """Read once. Raises ServiceError at the field."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ServiceError(
            "bad_address", "That is no address of a Prometheus server.",
            "Write its root, such as http://prometheus.monitoring:9090.", field="url",
        )  # fmt: skip
    source = Prometheus(url, token, timeout_s=TRIED_S)
    try:
        readings = read(source, activity)
    except (MetricsError, ValueError) as error:
        raise ServiceError(
            "no_metrics", str(error), "Check address and token.", field="url"
        ) from error
    finally:
        source.close()
    if not readings:
        raise ServiceError(
            "no_gpus_measured", "It answers, but has no series of SM activity with the labels of pods.",
            "Have it scrape the GPU exporter with pod labels, or name a recording rule that has them.",
            field="activity",
        )  # fmt: skip
    return Scrape(sum(use.devices for use in readings.values()), len(readings))


def set_source(
    *, cluster: Cluster, url: str, token: str, activity: str, author: AbstractBaseUser | None
) -> Scrape | None:
    """Have the cluster measured there from now on; with an empty ``url`` no longer. An empty ``token`` keeps
    the one that is known for the same address. Raises as ``try_source``.
    """
    known = cluster.metrics_token_file if url == cluster.metrics_url else ""
    token_file = token or _readable_file(known)
    found = try_source(url, token_file, activity) if url else None
    before = {"url": cluster.metrics_url, "activity": cluster.metrics_activity}
    with transaction.atomic():
        path = keep(cluster, "metrics_token_file", token_file if url else "")
        cluster.metrics_url, cluster.metrics_token_file = url, path
        cluster.metrics_activity = activity
        cluster.save(update_fields=["metrics_url", "metrics_token_file", "metrics_activity"])
        announce(
            "cluster.metrics_set", actor=author, cluster=cluster, subject=cluster.name,
            before=before, after={"url": url, "activity": activity},
        )  # fmt: skip
    return found


def _readable_file(path: str) -> str:
    """Raises ServiceError where the file cannot be read."""
    try:
        return read_token(path)
    except MetricsError as error:
        raise ServiceError(
            "no_token", str(error), "Paste the token again.", field="token"
        ) from error
