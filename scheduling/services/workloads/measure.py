"""One look at what the GPUs of a cluster do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from django.db import transaction

from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.metrics import MetricsError, PodUse, Prometheus, read
from scheduling.cluster.picture.owners import owners
from scheduling.models import Cluster, Workload, credentials
from scheduling.models.workloads import HOLDING
from scheduling.services.workloads import idle
from scheduling.services.workloads.gpu_use import MeasuredGpuUse, book_samples, book_work, together

MOST_GAP_S = 180.0
"""Wall seconds between two looks; what lies in a longer gap nobody saw."""

Readings = Mapping[tuple[str, str], PodUse]


def source_of(cluster: Cluster) -> Prometheus:
    """Raises MetricsError where its token cannot be read."""
    return Prometheus(cluster.metrics_url, read_token(cluster.metrics_token_file))


def read_token(place: str) -> str:
    """Empty where there is none. Raises MetricsError."""
    try:
        return credentials.read(place)
    except OSError as error:
        raise MetricsError(f"Its token cannot be read: {error.strerror or error}.") from error


def measure(cluster: Cluster, mirror: Mirror) -> int:
    """Read, book, and note what idles; returns the devices that were measured. What cannot be read is noted
    with the cluster and raised as MetricsError.
    """
    try:
        source = source_of(cluster)
        try:
            readings = read(source, cluster.metrics_activity)
        finally:
            source.close()
    except MetricsError as error:
        Cluster.objects.filter(pk=cluster.pk).update(metrics_fault=str(error)[:300])
        raise
    book(cluster, readings, owners(mirror), now=cluster.now())
    idle.cull(cluster, cluster.now())
    return sum(use.devices for use in readings.values())


@transaction.atomic
def book(
    cluster: Cluster, readings: Readings, owned: Mapping[tuple[str, str], str], *, now: datetime
) -> None:
    """``readings`` by pod, ``owned`` the uid of each pod's workload. Twice at one moment books once."""
    # The worker that books holds the row: of two workers the second finds that no time has passed.
    row = Cluster.objects.select_for_update().get(pk=cluster.pk)
    gap = timedelta(seconds=MOST_GAP_S * max(1.0, row.clock_speed))
    since = row.measured_at
    measured = list(_measured(cluster, readings, owned))
    if since is not None and since < now <= since + gap:
        book_work(measured, since, now)
        book_samples(cluster, measured, since, now)
    idle.note(cluster, measured, now)
    devices = sum(use.devices for use in readings.values())
    fault = "" if devices else "It has no series of SM activity with the labels of pods."
    Cluster.objects.filter(pk=cluster.pk).update(
        measured_at=max(since or now, now), measured_gpus=devices, metrics_fault=fault
    )


def _measured(
    cluster: Cluster, readings: Readings, owned: Mapping[tuple[str, str], str]
) -> Iterator[MeasuredGpuUse]:
    """By workload, of those that hold GPUs of a known class."""
    parts: dict[str, list[PodUse]] = {}
    for pod, use in readings.items():
        if pod in owned:
            parts.setdefault(owned[pod], []).append(use)
    works = Workload.objects.filter(
        cluster=cluster, uid__in=list(parts), state__in=HOLDING, gpu_class__isnull=False
    )
    for work in works.order_by("pk"):
        yield MeasuredGpuUse(work, together(parts[work.uid]))
