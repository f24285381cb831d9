"""How each stream stands, as pages, API, figures and ``manage.py doctor`` tell. No secret is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from portal.audit.models import ChainHead
from portal.streams import batches
from portal.streams.models import Name, Stream
from portal.streams.targets import TargetError, configured, target_named
from scheduling.models import Cluster

LATE_S = 600.0
"""A stream that lags so long without a fault is sent by nobody."""


@dataclass(frozen=True, slots=True)
class StreamStanding:
    name: str
    label: str
    where: str
    waiting: int
    """Entries of the audit log that were not looked at; rows of usage."""
    lag_s: float
    """How long what waits could have gone out."""
    sent_at: datetime | None
    failing_since: datetime | None
    next_try_at: datetime | None
    fault: str

    @property
    def is_late(self) -> bool:
        return self.lag_s > LATE_S


def standings(now: datetime | None = None) -> Sequence[StreamStanding]:
    """Of every stream that has a target."""
    known = {row.pk: row for row in Stream.objects.all()}
    moment = now or timezone.now()
    return [
        _standing(known.get(name) or Stream(name=name), address, moment)
        for name, address in configured().items()
    ]


def _standing(stream: Stream, address: str, now: datetime) -> StreamStanding:
    try:
        where, fault = target_named(address).where, stream.fault
    except TargetError as error:
        where, fault = "no target", str(error)
    waiting, lag = _usage() if stream.name == Name.USAGE else _entries(stream, now)
    return StreamStanding(
        name=stream.name,
        label=Name(stream.name).label,
        where=where,
        waiting=waiting,
        lag_s=lag.total_seconds(),
        sent_at=stream.sent_at,
        failing_since=stream.failing_since,
        next_try_at=stream.due_at if fault else None,
        fault=fault,
    )


def _entries(stream: Stream, now: datetime) -> tuple[int, timedelta]:
    head = ChainHead.objects.values_list("number", flat=True).first() or 0
    oldest = batches.waiting_entries(stream).values_list("at", flat=True).first()
    return max(0, head - stream.number), now - oldest if oldest else timedelta(0)


def _usage() -> tuple[int, timedelta]:
    clusters = list(Cluster.objects.all())
    lags = [batches.usage_lag(cluster) for cluster in clusters]
    waiting = sum(batches.waiting_usage(cluster).count() for cluster in clusters)
    return waiting, max(lags, default=timedelta(0))
