"""What came before a cycle and what came of it: its causes and its writes, as one reader may have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.accounts.models import User
from portal.teams.access import visible_workloads
from scheduling.models import CycleRecord, Workload
from scheduling.services.cycle.record.causes import What
from scheduling.services.cycle.record.records import WRITING

Json = dict[str, Any]
WORDS: Mapping[str, str] = {
    What.SUBMITTED: "was submitted",
    What.EDITED: "was edited",
    What.ENDED: "ended",
    What.LEFT: "has left its nodes after an eviction",
    What.RETURNED: "was put back into a queue",
    What.NODE_CAME: "joined the cluster",
    What.NODE_WENT: "left the cluster",
    What.NODE_DOWN: "takes no more work",
    What.NODE_READY: "is ready again",
}
POLICY_WORDS = "changed"


@dataclass(frozen=True, slots=True)
class CauseLine:
    """``workload`` or ``node`` or ``policy`` is what it is about."""

    at: datetime
    words: str
    workload: Workload | None = None
    node: str = ""
    policy: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    workload: Workload
    kind: str
    name: str
    purpose: str
    method: str
    code: int
    message: str
    ms: float

    @property
    def is_part(self) -> bool:
        """Whether it was about one of the objects that make up the workload."""
        return self.kind != self.workload.kind


@dataclass(frozen=True, slots=True)
class Around:
    """``hidden`` is what is about work out of the reader's sight, ``more`` what was not kept one by one."""

    causes: list[CauseLine]
    hidden_causes: int
    writes: list[Write]
    hidden_writes: int
    more_writes: int
    said: int
    """Objects that were told why their work waits."""

    @property
    def is_written(self) -> bool:
        return bool(self.writes or self.hidden_writes or self.said)

    @classmethod
    def of(cls, record: CycleRecord, user: User) -> Around:
        named = {row["workload"] for row in (*record.causes, *record.writes) if row.get("workload")}
        rows = visible_workloads(user).filter(pk__in=named).select_related("queue", "cluster")
        seen = {work.pk: work for work in rows}
        causes = [cause for row in record.causes if (cause := cause_of(row, seen))]
        writes = [write for row in record.writes if (write := _write(row, seen))]
        return cls(
            causes=causes,
            hidden_causes=len(record.causes) - len(causes),
            writes=writes,
            hidden_writes=len(record.writes) - len(writes),
            more_writes=max(0, record.written + record.refused - len(record.writes)),
            said=record.said,
        )


@dataclass(frozen=True, slots=True)
class Way:
    """From the first change that a cycle answered: real seconds until it looked, until its plan was committed
    and until its writes were done. Changes of the cluster are dated to the second by the cluster itself."""

    looked_s: float
    planned_s: float
    acted_s: float


def way(
    looked_at: datetime, took_ms: float, causes: Sequence[Json], phases: Iterable[Any], speed: float
) -> Way | None:
    """Of a cycle and its record; ``speed`` is that of the cluster's clock. None where it
    answered no change, as where time alone let work start, or nobody measured how long it took."""
    if not causes or not took_ms:
        return None
    first = min(datetime.fromisoformat(row["at"]) for row in causes)
    looked_s = max(0.0, (looked_at - first).total_seconds()) / speed
    planned_s = looked_s + took_ms / 1000
    return Way(looked_s, planned_s, planned_s + dict(phases).get(WRITING, 0.0) / 1000)


def cause_of(row: Json, seen: Mapping[int, Workload]) -> CauseLine | None:
    """A row of ``CycleRecord.causes``; None where it is about work that is not among ``seen``."""
    at = datetime.fromisoformat(row["at"])
    if row["what"] == What.POLICY:
        return CauseLine(at, POLICY_WORDS, policy=row["name"])
    words = WORDS.get(row["what"], row["what"])
    if "name" in row:
        return CauseLine(at, words, node=row["name"])
    work = seen.get(row["workload"])
    return CauseLine(at, words, workload=work) if work else None


def _write(row: Json, seen: Mapping[int, Workload]) -> Write | None:
    work = seen.get(row["workload"] or 0)
    return Write(**{**row, "workload": work}) if work else None
