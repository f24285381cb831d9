"""The draws that make one replay of a past differ from the next, in what-if, capacity and experiments alike.

Bands of replays are to hold what might as well have come: arrivals in another order, runs that take longer
or shorter. The same seed draws the same for the same jobs in every world, so that two worlds are compared
pair by pair (common random numbers: Law, Simulation Modeling and Analysis, 11.2); a job more at the beginning
changes no other's draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from scheduling.engine.compile.structs import Floats, Ints
from scheduling.simulation.run.jobs import Submission

MOVED_S = 1800
"""A job arrives up to so much sooner or later than it did."""
SPREAD = 0.25
"""Standard deviation of the logarithm of a run time around what came: two of three lie within a quarter. The
mean factor is 1, so that the draws add no load."""
ARRIVING, STANDING = 0, 1


def drawn(
    jobs: Sequence[Submission], standing: int, begin: datetime, until: datetime, seed: int
) -> tuple[list[Submission], list[int]]:
    """``jobs`` as the dice of ``seed`` have them, in order of arrival within [begin, until], and the former
    place of each. The first ``standing`` stood at the beginning: they stay there, and run as drawn."""
    arriving = len(jobs) - standing
    later_s = np.concatenate([np.zeros(standing, np.int64), _later_s(seed, arriving)])
    longer = np.concatenate([_longer(seed, STANDING, standing), _longer(seed, ARRIVING, arriving)])
    moved = [
        _moved(job, begin, until, int(s), float(f))
        for job, s, f in zip(jobs, later_s, longer, strict=True)
    ]
    order = sorted(range(len(moved)), key=lambda i: (moved[i].submitted, i))
    return [moved[i] for i in order], order


def _later_s(seed: int, count: int) -> Ints:
    return np.random.default_rng([seed, ARRIVING, 1]).integers(-MOVED_S, MOVED_S + 1, count)


def _longer(seed: int, which: int, count: int) -> Floats:
    """Log-normal factors of mean 1."""
    dice = np.random.default_rng([seed, which, 2])
    return np.exp(dice.normal(-(SPREAD**2) / 2, SPREAD, count))


def _moved(
    job: Submission, begin: datetime, until: datetime, later_s: int, longer: float
) -> Submission:
    at = min(max(job.submitted + timedelta(seconds=later_s), begin), until)
    run_s = max(1, round(job.duration_s * longer))
    return replace(job, workload=replace(job.workload, submitted=at), duration_s=run_s)
