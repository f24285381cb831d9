"""The last days lived again with an edit of quotas, as one person may read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from portal.accounts.models import User
from portal.display.format import counted, hmin, number
from portal.teams.access import visible_queues
from scheduling.models import Study, StudyState

Json = Mapping[str, Any]
FIGURES = {
    "used_gpu_hours": "held {} GPU-hours",
    "started": "started {}",
    "evictions": "evictions {}",
    "lost_gpu_hours": "lost {} GPU-hours",
    "later_than_alone": "later than on their own quota {}",
}


@dataclass(frozen=True, slots=True)
class ReplayWaits:
    """P50 and P90 of one queue, before and with the edit; ``verdict`` is of the P90."""

    queue: str
    jobs: int
    p50: tuple[str, str]
    p90: tuple[str, str]
    verdict: str


@dataclass(frozen=True, slots=True)
class Replay:
    """``waits`` and ``whole``, the figures of the whole cluster, once it is ``is_done``."""

    question: Study
    waits: Sequence[ReplayWaits] = ()
    whole: str = ""

    @property
    def is_open(self) -> bool:
        return self.question.state in (StudyState.WAITING, StudyState.RUNNING)

    @property
    def is_done(self) -> bool:
        return self.question.state == StudyState.DONE

    @property
    def begin(self) -> datetime | None:
        return parse_datetime(self._replay.get("begin", ""))

    @property
    def end(self) -> datetime | None:
        return parse_datetime(self._replay.get("end", ""))

    @property
    def _replay(self) -> Json:
        found: Json = self.question.answer.get("replay", {})
        return found


def replayed(person: User, question: Study | None) -> Replay | None:
    """None where nothing was asked."""
    if question is None:
        return None
    found = question.answer.get("replay")
    if question.state != StudyState.DONE or found is None:
        return Replay(question)
    seen = visible_queues(person).filter(cluster=question.cluster_id)
    names = set(seen.values_list("name", flat=True))
    waits = [_waits(row) for row in found["queues"] if row["queue"] in names and row["jobs"]]
    return Replay(question, waits, _whole(found))


def _waits(row: Json) -> ReplayWaits:
    p50, p90 = row["p50_s"], row["p90_s"]
    return ReplayWaits(
        row["queue"],
        row["jobs"],
        (hmin(p50["before"]), hmin(p50["after"])),
        (hmin(p90["before"]), hmin(p90["after"])),
        p90["verdict"],
    )


def _whole(found: Json) -> str:
    """'1,284 workloads: evictions 41 → 44, lost 118 → 124 GPU-hours'."""
    sides: Iterable[tuple[str, Json]] = found["figures"].items()
    moves = [FIGURES[name].format(_move(side)) for name, side in sides if name in FIGURES]
    return f"{counted(found['jobs'], 'workload')}: {', '.join(moves)}"


def _move(side: Json) -> str:
    before, after = number(side["before"], 1), number(side["after"], 1)
    return before if before == after else f"{before} → {after}"
