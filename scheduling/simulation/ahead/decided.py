"""What a plan leads to: it is carried out on its snapshot, and life goes on from there.

Who was open then runs for as long as is known of it, and who comes arrives when it came; the shipped engine
decides everything after the plan, by the policy of the snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.model import Action, Phase, Plan, Snapshot, Workload
from scheduling.simulation.compiled.lives import Life
from scheduling.simulation.run.carrying import carried_out
from scheduling.simulation.run.frames import Scribe
from scheduling.simulation.run.jobs import Submission

from .forward import GOES_ON, Forward
from .opening import Newcomers, Opening, described, open_snapshot


@dataclass(frozen=True, slots=True)
class Known:
    """``rests``: useful seconds with all members that open work still ran for, by name. ``coming`` arrives
    after the snapshot, in order; its ``virtual_start`` is when its own quota would have let it begin."""

    rests: Mapping[str, float]
    coming: Sequence[Submission] = ()
    checkpoints: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Aftermath:
    """Until the stop: seconds that all work waited, first starts and after evictions alike; GPU-seconds that
    evictions lost, those of the plan among them."""

    wait_s: float
    lost_gpu_s: float


class UnknownRunError(ValueError):
    """Nobody knows how long somebody runs who starts by the plan; ``args[0]`` is who."""


def live_after(snapshot: Snapshot, plan: Plan, known: Known, until: datetime) -> Aftermath:
    """``plan`` carried out on ``snapshot``, and what follows. Raises UnknownRunError; UnsettledError."""
    after = _without_unknown(carried_out(snapshot, plan, at_once=True), known)
    opening = open_snapshot(after, known.checkpoints)
    until_s = max(1, int((until - snapshot.now).total_seconds()))
    works = {work.name: work for work in after.workloads}
    rest_s = [_rest_s(works[name], known, snapshot.now, until_s) for name in opening.names]
    coming = _newcomers(opening, snapshot, known.coming)
    course = Forward(
        opening, np.array(rest_s, np.int64), coming, until_s, GOES_ON, is_played_along=True
    )
    life = course.live_out()
    lost = sum(one.lost_gpu_s for one in plan.decisions if one.action is Action.EVICT)
    size = int(life.ledger.used[0])
    return Aftermath(
        wait_s=float(_waited_s(life, opening.runs, until_s).sum()),
        lost_gpu_s=float(lost + life.ledger.lost[:size].sum()),
    )


def _without_unknown(snapshot: Snapshot, known: Known) -> Snapshot:
    """Whoever waits and never ran is left out: it would wait in any life."""
    for work in snapshot.workloads:
        if work.started == snapshot.now and work.name not in known.rests:
            raise UnknownRunError(work.name)
    kept = (w for w in snapshot.workloads if w.name in known.rests or w.phase is Phase.RUNNING)
    return replace(snapshot, workloads=tuple(kept))


def _rest_s(work: Workload, known: Known, now: datetime, until_s: int) -> int:
    """With the members it has; one of which nothing is known outlives the stop."""
    rest_s = known.rests.get(work.name)
    if rest_s is None:
        return until_s + 1
    if work.leaving and work.started:
        rest_s += unsaved_s(work, now) * sum(work.placement.values()) / work.members.max
    elif work.phase is Phase.RUNNING:
        rest_s *= work.members.max / max(1, sum(work.placement.values()))
        rest_s += work.restart_cost_s if work.started == now and work.evictions else 0
    return max(1, round(rest_s))


def unsaved_s(work: Workload, now: datetime) -> float:
    """Seconds of the current run that its last checkpoint does not hold."""
    begun = work.started or now
    return (now - max(begun, work.checkpointed or begun)).total_seconds()


def _newcomers(
    opening: Opening, snapshot: Snapshot, submissions: Sequence[Submission]
) -> Newcomers:
    scribe, now = Scribe(opening.frame), snapshot.now
    rows = []
    for one in submissions:
        work, row = one.workload, scribe.columns(one.workload)
        if work.rank_s is not None:
            row["rank"] = work.rank_s
        if work.virtual_start is not None:
            row["virtual"] = work.virtual_start.timestamp()
        rows.append(row)
    cast = described(opening.frame, rows, 0.0)
    cast.restart[:] = [one.restart_s for one in submissions]

    def column(values: Sequence[float]) -> Ints:
        return np.array(values, np.float64).astype(np.int64)

    return Newcomers(
        cast=cast,
        submit=column([(one.submitted - now).total_seconds() for one in submissions]),
        duration=column([one.duration_s for one in submissions]),
        checkpoint=column([one.checkpoint_s or 0 for one in submissions]),
        restart=column([one.restart_s for one in submissions]),
    )


def _waited_s(life: Life, ran: np.ndarray, until_s: int) -> Floats:
    """By job: seconds that it was open and did not run; ``ran`` says who of the open work did at first."""
    jobs, acts = life.jobs, life.ledger
    size, first = int(acts.used[0]), np.flatnonzero(ran)
    job = np.concatenate([first, acts.job[:size]])
    at = np.concatenate([np.zeros(first.size, np.int64), acts.at[:size]])
    runs = np.concatenate([np.ones(first.size, np.bool_), acts.action[:size] != codes.EVICT])
    order = np.lexsort((np.arange(job.size), job))
    job, at, runs = job[order], at[order], runs[order]
    ends = np.where(jobs.end >= 0, jobs.end, until_s)
    follows = np.append(job[1:] == job[:-1], False) if job.size else np.zeros(0, np.bool_)
    until = np.where(follows, np.append(at[1:], 0), ends[job]) if job.size else at
    spell = np.where(runs, np.maximum(0, until - at), 0)
    ran_s = np.bincount(job, weights=spell, minlength=jobs.submit.size)
    open_s = np.maximum(0, np.minimum(ends, until_s) - np.maximum(0, jobs.submit))
    waited: Floats = np.maximum(0.0, open_s - ran_s)
    return waited
