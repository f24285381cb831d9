"""A past period lived again in a changed world, with a warm-up before it that is not judged."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.structs import Flags, Ints
from scheduling.engine.model import MILLI, Snapshot
from scheduling.simulation.ahead import draws
from scheduling.simulation.ahead.compare import WindowOutcome
from scheduling.simulation.loop.lives import Life, live_submissions
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.run.options import Options

AS_IT_CAME = 0
"""The seed that draws nothing."""


@dataclass(frozen=True, slots=True)
class Period:
    """``jobs`` in order of submission from ``begin`` on; what is ``judged`` was submitted in [since, until).
    The first ``standing`` of them stood at ``begin`` already."""

    begin: datetime
    since: datetime
    until: datetime
    jobs: tuple[Submission, ...]
    judged: tuple[bool, ...]
    standing: int = 0


@dataclass(frozen=True, slots=True)
class PeriodOutcome:
    """``lived`` are the judged jobs, its sums those of the period. GPU-seconds by queue and the class that
    the work names first; evictions by queue of whoever ran."""

    lived: WindowOutcome
    held_gpu_s: Mapping[tuple[str, str], float]
    evictions: Mapping[str, int]
    lost_gpu_s: Mapping[str, float]
    most_evictions: int
    """Of one job."""


def drawn(period: Period, seed: int) -> Period:
    """The period as the dice of ``seed`` have it (``draws``)."""
    if seed == AS_IT_CAME:
        return period
    jobs, order = draws.drawn(period.jobs, period.standing, period.begin, period.until, seed)
    return replace(period, jobs=tuple(jobs), judged=tuple(period.judged[i] for i in order))


def live_again(world: Snapshot, period: Period) -> PeriodOutcome:
    """The shipped engine lives the period in ``world``, which is empty. Raises UnsettledError."""
    start = replace(world, now=period.begin, workloads=())
    life = live_submissions(start, period.jobs, Options(until=period.until), foreseen=True)
    since_s = int((period.since - period.begin).total_seconds())
    until_s = int((period.until - period.begin).total_seconds())
    places = [_place(job) for job in period.jobs]
    gpu_s = _held_gpu_s(life, since_s, until_s)
    evicted, lost = _evicted(life, since_s)
    queues = [queue for queue, _ in places]
    return PeriodOutcome(
        lived=_lived(period, places, life, until_s, evicted, lost, gpu_s),
        held_gpu_s=_summed(places, gpu_s),
        evictions={name: round(count) for name, count in _summed(queues, evicted).items()},
        lost_gpu_s=_summed(queues, lost),
        most_evictions=int(evicted.max(initial=0)),
    )


def _place(job: Submission) -> tuple[str, str]:
    return job.workload.queue, next(iter(job.workload.gpu_classes), "")


def _lived(
    period: Period,
    places: Sequence[tuple[str, str]],
    life: Life,
    until_s: int,
    evicted: np.ndarray,
    lost: np.ndarray,
    gpu_s: np.ndarray,
) -> WindowOutcome:
    which = np.flatnonzero(np.array(period.judged, np.bool_))
    first, submit = life.jobs.first[which], life.jobs.submit[which]
    wait_s = np.maximum(0, np.where(first >= 0, first, until_s) - submit)
    return WindowOutcome(
        queue=tuple(places[i][0] for i in which.tolist()),
        gpu_class=tuple(places[i][1] for i in which.tolist()),
        wait_s=wait_s.astype(np.float64),
        started=first >= 0,
        submit_s=submit,
        end_s=life.jobs.end[which],
        evictions=round(float(evicted.sum())),
        lost_gpu_s=float(lost.sum()),
        held_gpu_s=float(gpu_s.sum()),
    )


def _evicted(life: Life, since_s: int) -> tuple[np.ndarray, np.ndarray]:
    """By job: evictions of the period, and the GPU-seconds that they lost."""
    acts, count = life.ledger, life.jobs.submit.size
    size = int(acts.used[0])
    chosen = (acts.action[:size] == codes.EVICT) & (acts.at[:size] >= since_s)
    job = acts.job[:size][chosen]
    lost = np.bincount(job, weights=acts.lost[:size][chosen], minlength=count)
    return np.bincount(job, minlength=count).astype(np.float64), lost


def _held_gpu_s(life: Life, since_s: int, until_s: int) -> np.ndarray:
    """By job: GPU-seconds held within the period, of the acts that gave and took GPUs."""
    acts, jobs = life.ledger, life.jobs
    size = int(acts.used[0])
    order = np.lexsort((np.arange(size), acts.job[:size]))
    job, at, action = (column[:size][order] for column in (acts.job, acts.at, acts.action))
    gpus = np.where(action == codes.EVICT, 0, acts.gpus[:size][order])
    ended = np.where(jobs.end >= 0, jobs.end, until_s)
    follows = _follows(job)
    until = np.where(follows, np.append(at[1:], 0), ended[job]) if size else at
    spell = np.clip(until, since_s, until_s) - np.clip(at, since_s, until_s)
    weights = gpus / MILLI * np.maximum(0, spell)
    gpu_s: np.ndarray = np.bincount(job, weights=weights, minlength=jobs.submit.size)
    return gpu_s


def _follows(job: Ints) -> Flags:
    """Whether the next act is of the same job."""
    return np.append(job[1:] == job[:-1], False)


Key = TypeVar("Key", bound=Hashable)


def _summed(keys: Sequence[Key], values: np.ndarray) -> dict[Key, float]:
    found: dict[Key, float] = {}
    for key, value in zip(keys, values.tolist(), strict=True):
        if value:
            found[key] = found.get(key, 0.0) + value
    return found
