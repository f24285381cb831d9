"""What a stream sends next, read after its cursor, and the cursor moved once it was sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.audit.kinds import is_security
from portal.audit.models import AuditEntry
from portal.streams.models import Name, Position, Stream
from portal.streams.records import Record, of_entry, of_sample
from scheduling.models import Cluster, Queue, UsageSample
from scheduling.services.ledger.rollup import HOURLY, settled_before

Row = TypeVar("Row")

MOST = 500
MOST_BYTES = 512 * 1024
"""Of one batch; the last record may pass it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """``records`` may be empty where what was read is of no concern to the stream."""

    records: tuple[Record, ...]
    number: int = 0
    position: Position | None = None
    """Where the cursor stands once they have arrived: an entry's number, or a row of usage."""


def next_of(stream: Stream) -> Batch | None:
    """None where nothing waits."""
    return _usage() if stream.name == Name.USAGE else _entries(stream)


def move(stream: Stream, batch: Batch) -> None:
    """Inside of the transaction in which the claim was found to be held."""
    if (at := batch.position) is not None:
        Position.objects.update_or_create(
            cluster=at.cluster, defaults={"hour": at.hour, "row": at.row}
        )
    else:
        Stream.objects.filter(pk=stream.pk).update(number=batch.number)


def waiting_entries(stream: Stream) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(number__gt=stream.number).order_by("number")


def waiting_usage(cluster: Cluster) -> QuerySet[UsageSample]:
    """Closed hours that change no more, oldest first."""
    rows = UsageSample.objects.filter(
        queue__cluster=cluster, resolution=HOURLY, start__lt=settled_before(cluster)
    ).order_by("start", "pk")
    at = Position.objects.filter(cluster=cluster).first()
    if at is None:
        return rows
    return rows.filter(start__gte=at.hour).filter(Q(start__gt=at.hour) | Q(pk__gt=at.row))


def usage_lag(cluster: Cluster) -> timedelta:
    """How long what waits could have gone out."""
    oldest: datetime | None = waiting_usage(cluster).values_list("start", flat=True).first()
    return settled_before(cluster) - oldest if oldest else timedelta(0)


def _entries(stream: Stream) -> Batch | None:
    taken: list[Record] = []
    number = stream.number
    for entry, record in _sized((e, of_entry(e, stream.name)) for e in _some(stream)):
        number = entry.number
        if stream.name == Name.AUDIT or is_security(entry.kind, refused=entry.refused):
            taken.append(record)
    return Batch(tuple(taken), number) if number > stream.number else None


def _some(stream: Stream) -> Iterator[AuditEntry]:
    yield from waiting_entries(stream)[:MOST]


def _usage() -> Batch | None:
    above = Queue.objects.filter(parent=OuterRef("queue"))
    for cluster in Cluster.objects.order_by("pk"):
        found = waiting_usage(cluster).select_related("queue__cluster", "gpu_class")
        rows = list(found.annotate(is_above=Exists(above))[:MOST])
        if taken := list(_sized((row, of_sample(row)) for row in rows)):
            last = taken[-1][0]
            at = Position(cluster=cluster, hour=last.start, row=last.pk)
            return Batch(tuple(record for _, record in taken), position=at)
    return None


def _sized(pairs: Iterable[tuple[Row, Record]]) -> Iterator[tuple[Row, Record]]:
    """As many as one batch may hold, at least one."""
    size = 0
    for row, record in pairs:
        yield row, record
        size += len(record.line)
        if size >= MOST_BYTES:
            return
