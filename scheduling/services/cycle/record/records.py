"""What a cycle that acted was made of: its input, the queues it touched, and where its time went."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduling.cluster.enforcement.enforcer import Report, Write
from scheduling.engine import Outline, document
from scheduling.engine import model as m
from scheduling.models import Cluster, Cycle, CycleRecord, Workload
from scheduling.services.cycle.record.causes import MOST, Cause

Json = dict[str, Any]
Key = tuple[str, str]
"""Queue and class by name."""

WRITES = 100
"""Writes of a cycle that are kept one by one."""
WRITING = "Write to the cluster"
"""Name of the phase in which the API server is spoken to."""
LARGEST = 2000
"""Workloads and nodes of a snapshot that is kept: writing a larger one takes longer than planning it."""
FIGURES = (
    "allocated", "fair_share", "nominal", "limit", "demand", "pending", "lent", "kept_back",
)  # fmt: skip


@dataclass(slots=True)
class Watch:
    """Where the time of a cycle goes, in phases that follow each other."""

    began: float
    laps: list[tuple[str, float]] = field(default_factory=list)
    """(name, milliseconds)."""

    def lap(self, name: str) -> None:
        spent = sum(ms for _, ms in self.laps)
        self.laps.append((name, max(0.0, self.passed_s() * 1000 - spent)))

    def passed_s(self) -> float:
        return time.monotonic() - self.began


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A cycle and its plan."""

    cycle: Cycle
    snapshot: m.Snapshot
    plan: Outline
    by_name: Mapping[str, Workload]
    """Engine name -> row."""
    causes: Sequence[Cause] = ()
    """What had come to pass since the cycle before."""
    writer: document.Writer = field(default_factory=document.Writer)
    """Of the records of the cluster."""


def keep(made: PlanRecord, phases: Sequence[tuple[str, float]], report: Report) -> CycleRecord:
    """Write the record of ``made``, over one that its cycle has already."""
    record, _ = CycleRecord.objects.update_or_create(
        cycle=made.cycle,
        defaults={
            "snapshot": packed(made.snapshot, made.writer),
            "queues": touched(made),
            "phases": [[name, round(ms, 1)] for name, ms in phases],
            "causes": [cause.as_json() for cause in made.causes[:MOST]],
            "more_causes": max(0, len(made.causes) - MOST),
            "writes": writes(made, report),
            "said": report.said,
            "written": report.written - report.said,
            "refused": len(report.failed),
        },
    )
    return record


def writes(made: PlanRecord, report: Report) -> list[Json]:
    """What was sent about whom, the refused first; the rest beyond ``WRITES`` is only counted."""
    by_fault = sorted(report.writes, key=lambda write: not write.code)[:WRITES]
    uids = {write.workload_uid for write in by_fault}
    keys = {row.uid: row.pk for row in made.by_name.values() if row.uid in uids}
    return [_write_as_json(write, keys) for write in by_fault]


def _write_as_json(write: Write, rows: Mapping[str, int]) -> Json:
    return {
        "workload": rows.get(write.workload_uid),
        "kind": write.kind,
        "name": write.name,
        "purpose": write.purpose,
        "method": write.method,
        "code": write.code,
        "message": write.message,
        "ms": round(write.took_ms, 1),
    }


def complete(cluster: Cluster, late: Sequence[Write]) -> None:
    """Add to the records of ``cluster`` what was written after its cycle had left it on its way."""
    for number in sorted({write.cycle for write in late}):
        came = [write for write in late if write.cycle == number]
        record = CycleRecord.objects.filter(cycle__cluster=cluster, cycle__number=number).first()
        if record is None:
            continue
        uids = {write.workload_uid for write in came}
        rows = dict(cluster.workloads.filter(uid__in=uids).values_list("uid", "pk"))
        writes = [*record.writes, *(_write_as_json(write, rows) for write in came)]
        record.writes = sorted(writes, key=lambda write: not write["code"])[:WRITES]
        record.written += sum(bool(write.method) and not write.code for write in came)
        record.refused += sum(bool(write.code) for write in came)
        record.save(update_fields=["writes", "written", "refused"])


def packed(snapshot: m.Snapshot, writer: document.Writer) -> bytes | None:
    """As it is kept; None for one that is too large."""
    if len(snapshot.workloads) + len(snapshot.nodes) > LARGEST:
        return None
    return gzip.compress(writer.write(snapshot), compresslevel=6)


def unpacked(record: CycleRecord) -> Json | None:
    """The snapshot file's document, as ``document.parse`` reads it."""
    if record.snapshot is None:
        return None
    found: Json = json.loads(gzip.decompress(bytes(record.snapshot)))
    return found


def touched(made: PlanRecord) -> list[Json]:
    """Queues and classes of the acts in the plan's order, before it and what it changes."""
    changes: dict[Key, int] = {}
    for key, milli in _changes(made):
        changes[key] = changes.get(key, 0) + milli
    rows = []
    for (queue, gpu_class), change in changes.items():
        share = made.plan.fair_share.get(queue, {}).get(gpu_class)
        if share is not None:
            figures = {name: getattr(share, name) for name in FIGURES}
            rows.append({"queue": queue, "gpu_class": gpu_class, "change": change, **figures})
    return rows


def _changes(made: PlanRecord) -> Iterator[tuple[Key, int]]:
    """What each act adds to what its queue holds, with what comes to those for whom room is made."""
    before = {w.name: w for w in made.snapshot.workloads}
    promised = {act.workload for act in made.plan.acts}
    for act in made.plan.acts:
        work = before.get(act.workload)
        if work is None or not act.gpu_class:
            continue
        yield (work.queue, act.gpu_class), work.gpus * (_members_after(act) - _members(work))
        winner = before.get(act.for_workload or "")
        if act.action in LEAVING and winner is not None:
            comes = 0 if winner.name in promised else winner.gpus * winner.members.min
            promised.add(winner.name)
            yield (winner.queue, act.gpu_class), comes


LEAVING = (m.Action.EVICT, m.Action.SHRINK, m.Action.MOVE)


def _members(work: m.Workload) -> int:
    return sum(work.placement.values()) if work.phase is m.Phase.RUNNING else 0


def _members_after(act: m.Decision) -> int:
    return 0 if act.action is m.Action.EVICT else act.members
