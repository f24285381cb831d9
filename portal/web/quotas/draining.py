"""Whom a drain would evict, said before it is done: the engine's plan with the queue drained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.models import MILLI, Queue, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.explain import asking
from scheduling.services.words.sentences import Reader, name_of

CONFIRMED = "confirm_drain"
"""Field by which the list is confirmed."""


@dataclass(frozen=True, slots=True)
class Leaver:
    """One who would be evicted: milli-GPU that it gives back, GPU-seconds of work that are lost."""

    workload: Workload
    name: str
    gpus: int
    lost_gpu_s: float


@dataclass(frozen=True, slots=True)
class DrainPreview:
    """``fault`` says why nobody could be asked whom it evicts."""

    queue: Queue
    leaving: Sequence[Leaver] = ()
    fault: str = ""

    @property
    def gpus(self) -> int:
        return sum(one.gpus for one in self.leaving)

    @property
    def lost_gpu_s(self) -> float:
        return sum(one.lost_gpu_s for one in self.leaving)


def draining(queue: Queue, reader: Reader) -> DrainPreview:
    """What the plan says of ``queue`` drained now, as ``reader`` may have it."""
    try:
        decisions = asking.drained(queue)
    except ServiceError as fault:
        return DrainPreview(queue, fault=str(fault))
    rows = {
        asking.name_in_plan(work): work
        for work in asking.rows_of(queue.cluster, [decision.workload for decision in decisions])
    }
    return DrainPreview(
        queue, [_leaving(d, rows[d.workload], reader) for d in decisions if d.workload in rows]
    )


def _leaving(decision: Any, work: Workload, reader: Reader) -> Leaver:
    back = decision.numbers.get("gives_back") or 0
    return Leaver(work, name_of(work, reader) or "", round(back * MILLI), decision.lost_gpu_s)
