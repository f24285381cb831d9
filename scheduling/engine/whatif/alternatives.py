"""What else could have left for a workload: the engine plans again, once for each that stayed.

For each who runs where somebody had to leave, the snapshot is planned with everybody else there made not
preemptible: either that one makes the room alone, or the plan says why the winner still waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from scheduling.engine import model as m
from scheduling.engine.planner import plan

MOST_ASKED = 12
"""So many are looked at for one winner; each costs a plan."""
LEFT = (m.Action.EVICT, m.Action.SHRINK, m.Action.MOVE)
FIXED = " (stays)"
"""Ends the name of a priority class that stands in for another one, not preemptible."""


class VictimVerdict(StrEnum):
    CHOSEN = "chosen"
    ENOUGH = "enough"
    """It alone would have done."""
    FIXED = "fixed"
    """Not preemptible."""
    PROTECTED = "protected"
    OVER_CAP = "over_cap"
    BUDGET = "budget"
    NOT_ALONE = "not_alone"
    """What it holds is less than what was asked for."""
    SPARED = "spared"
    """The rules of sharing let it keep what it holds."""


STOPPED = {
    m.Reason.VICTIMS_PROTECTED: VictimVerdict.PROTECTED,
    m.Reason.EVICTION_CAP: VictimVerdict.OVER_CAP,
    m.Reason.BUDGET_SPENT: VictimVerdict.BUDGET,
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One who ran where room was needed. GPUs are milli-GPU, ``lost_gpu_s`` is None where it is not known."""

    work: m.Workload
    gpus: int
    verdict: VictimVerdict
    lost_gpu_s: float | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class VictimSearch:
    """One for whom others left."""

    winner: m.Workload
    gpu_class: str
    need: int
    candidates: Sequence[Candidate]
    more: int
    """What ran there too and is not looked at."""


def victim_searches(snapshot: m.Snapshot) -> list[VictimSearch]:
    """Each winner of the plan of ``snapshot`` with who could have left for it, those who did first."""
    acts = [d for d in plan(snapshot).decisions if d.action in LEFT and d.for_workload]
    winners = dict.fromkeys((d.for_workload or "", d.gpu_class or "") for d in acts)
    return [_search_of(snapshot, name, gpu_class, acts) for name, gpu_class in winners]


def _search_of(
    snapshot: m.Snapshot, name: str, gpu_class: str, acts: Sequence[m.Decision]
) -> VictimSearch:
    winner = next(w for w in snapshot.workloads if w.name == name)
    chosen = {d.workload: d for d in acts if d.for_workload == name and d.gpu_class == gpu_class}
    there = [w for w in snapshot.workloads if _runs(w, gpu_class)]
    need = winner.gpus * winner.members.min
    left = [Candidate(w, gpus_of(w), VictimVerdict.CHOSEN, chosen[w.name].lost_gpu_s)
            for w in there if w.name in chosen]  # fmt: skip
    stayed = sorted((w for w in there if w.name not in chosen), key=lambda w: (-gpus_of(w), w.name))
    asked_about = [_candidate(snapshot, winner, w, need) for w in stayed[:MOST_ASKED]]
    ranks = list(VictimVerdict)
    asked_about.sort(key=lambda one: ranks.index(one.verdict))
    return VictimSearch(
        winner, gpu_class, need, [*left, *asked_about], max(0, len(stayed) - MOST_ASKED)
    )


def _runs(work: m.Workload, gpu_class: str) -> bool:
    running = work.phase is m.Phase.RUNNING and not work.leaving
    return running and work.gpu_class == gpu_class and gpus_of(work) > 0


def gpus_of(work: m.Workload) -> int:
    return work.gpus * sum(work.placement.values())


def _candidate(snapshot: m.Snapshot, winner: m.Workload, work: m.Workload, need: int) -> Candidate:
    """What the engine says where ``work`` is the only one who may leave for ``winner``."""
    kind = next((p for p in snapshot.priority_classes if p.name == work.priority_class), None)
    if kind is not None and not kind.preemptible:
        return Candidate(work, gpus_of(work), VictimVerdict.FIXED)
    said = plan(_all_others_stay(snapshot, work)).decisions
    leaves = next((d for d in said if d.workload == work.name and d.action in LEFT), None)
    if leaves is not None and leaves.for_workload == winner.name:
        return Candidate(work, gpus_of(work), VictimVerdict.ENOUGH, leaves.lost_gpu_s)
    waits = next((d for d in said if d.workload == winner.name), None)
    verdict = STOPPED.get(waits.reason, VictimVerdict.SPARED) if waits else VictimVerdict.SPARED
    if verdict is VictimVerdict.SPARED and gpus_of(work) < need:
        verdict = VictimVerdict.NOT_ALONE
    until = waits.until if waits and verdict is VictimVerdict.PROTECTED else None
    return Candidate(work, gpus_of(work), verdict, until=until)


def _all_others_stay(snapshot: m.Snapshot, work: m.Workload) -> m.Snapshot:
    fixed = [replace(p, name=p.name + FIXED, preemptible=False) for p in snapshot.priority_classes]
    works = [
        w if w.name == work.name or w.phase is not m.Phase.RUNNING
        else replace(w, priority_class=w.priority_class + FIXED)
        for w in snapshot.workloads
    ]  # fmt: skip
    kinds = (*snapshot.priority_classes, *fixed)
    return replace(snapshot, priority_classes=kinds, workloads=tuple(works))
