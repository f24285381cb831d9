"""What goes out: lines of JSON, each with an ``id`` by which a receiver knows what comes twice."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from portal.audit.chain import SEALED
from portal.audit.models import AuditEntry
from portal.streams.models import Name
from scheduling.models import MILLI, UsageSample

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Record:
    """One line, and what a syslog server sorts it by."""

    stream: str
    at: datetime
    kind: str
    refused: bool
    facts: dict[str, Any]

    @property
    def line(self) -> str:
        """In ASCII: what would begin a new line or act on a terminal is escaped."""
        return json.dumps(self.facts, separators=(",", ":"), default=str)

    def cut(self) -> Record:
        """Without what has no bound, for a way with a longest message."""
        small = {**self.facts, "before": None, "after": None, "cut": True}
        return Record(self.stream, self.at, self.kind, self.refused, small)


def of_entry(entry: AuditEntry, stream: str) -> Record:
    """Every field that its digest seals, so that a receiver can verify the chain as well."""
    facts = {name: getattr(entry, name) for name in SEALED}
    facts["at"] = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    body = {"stream": stream, "id": f"audit-{entry.number}", **facts, "digest": entry.digest}
    return Record(stream, entry.at, entry.kind, entry.refused, body)


def of_sample(sample: UsageSample) -> Record:
    """Means over the hour in GPUs; ``leaf`` marks those whose sum counts nothing twice."""
    queue, hours = sample.queue, sample.seconds / 3600
    start = sample.start.astimezone(UTC).isoformat(timespec="seconds")
    used = None if sample.used_gpus is None else _gpus(sample.used_gpus)
    facts = {
        "stream": Name.USAGE.value,
        "id": f"usage-{queue.cluster.name}-{queue.path}-{sample.gpu_class.name}-{start}",
        "at": start,
        "cluster": queue.cluster.name,
        "queue": queue.path,
        "leaf": not getattr(sample, "is_above", False),
        "gpu_class": sample.gpu_class.name,
        "seconds": sample.seconds,
        "gpu_hours": round(sample.allocated_gpus * hours / MILLI, 6),
        "allocated_gpus": _gpus(sample.allocated_gpus),
        "used_gpus": used,
        "nominal_gpus": _gpus(sample.nominal_gpus),
        "fair_share_gpus": _gpus(sample.fair_share_gpus),
        "pending_gpus": _gpus(sample.pending_gpus),
        "ready_gpus": _gpus(sample.ready_gpus),
        "installed_gpus": _gpus(sample.installed_gpus),
    }
    return Record(Name.USAGE.value, sample.start, "usage", False, facts)


def _gpus(milli: float) -> float:
    return round(milli / MILLI, 3)
