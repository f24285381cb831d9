"""`bench duration`: run times of recorded jobs predicted at submission, then learned when they end."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from scheduling.prediction.baselines import Baselines
from scheduling.prediction.learner import Learner
from scheduling.prediction.runs import Run, Work
from scheduling.simulation.traces import Trace
from scheduling.simulation.traces.model import checksum
from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.benches.engine.requests import Request, read_requests
from workshop.simulator.recordings import read_recorded

TRACES = ("wagap-2013", "LCG-2005-0")
PHILLY = "philly"
Job = tuple[Work, float, float]
"""Work, seconds that it ran, and when it ended."""


def live(jobs: Iterable[Job], learner: Learner, baselines: Baselines) -> list[float]:
    """Predict each at its submission, then let it end in its time; the predicted medians as logarithms.

    Ends come before a submission at the same second, as they are over by then.
    """
    ends: list[tuple[float, int, Run]] = []
    medians: list[float] = []
    for number, (work, ran_s, ended) in enumerate(jobs):
        while ends and ends[0][0] <= work.submitted:
            _end(heapq.heappop(ends), learner, baselines)
        medians.append(learner.submit(number, work).quantiles.p50)
        baselines.judge(work, ran_s)
        heapq.heappush(ends, (ended, number, Run(work, ran_s, ended)))
    while ends:
        _end(heapq.heappop(ends), learner, baselines)
    return medians


def _end(event: tuple[float, int, Run], learner: Learner, baselines: Baselines) -> None:
    _, number, run = event
    learner.end(number, run)
    baselines.learn(run)


def jobs_of(requests: Sequence[Request]) -> Iterator[Job]:
    for one in requests:
        work = Work(
            user=one.user,
            team=one.group,
            queue=one.queue,
            gpus=one.processors,
            memory_gib=one.memory_gib,
            limit_s=one.limit_s,
            submitted=one.submit_s,
        )
        yield work, float(one.ran_s), float(one.end_s)


def philly_jobs(trace: Trace) -> Iterator[Job]:
    """Queue, size and time are all that is known of them. Their waits are another cluster's: each ends as if
    it had started at once."""
    for job in trace:
        work = Work(queue=job.queue, gpus=job.gpus, submitted=float(job.submit_s))
        yield work, float(job.duration_s), float(job.submit_s + job.duration_s)


def bench_duration(traces: Path, progress: Progress) -> Outcome:
    """Errors and coverage of learned run times on recorded jobs, beside one-line predictors; on Philly,
    whether boosting is worth more than history."""
    outcome = Outcome()
    for name in TRACES:
        file = traces / "swf" / f"{name}.swf.gz"
        outcome.inputs[file.name] = checksum(file)
        progress(name)
        outcome.measured |= _figures(name, jobs_of(read_requests(file)))
    progress(PHILLY)
    trace = read_recorded(traces / PHILLY)
    outcome.inputs |= trace.checksums()
    outcome.measured |= _figures(PHILLY, philly_jobs(trace))
    outcome.notes += [
        "a job is seen when it has ended, at submission + wait + run time; LCG and Philly tell no waits "
        "(Philly's are left out), so theirs are zero",
        "every figure is of all jobs, those before anything had ended included; errors are of P50, in powers "
        "of two; *_history_* and *_boosted_*: each model alone, the boosted one from its first fit on",
    ]
    return outcome


def _figures(name: str, jobs: Iterable[Job]) -> dict[str, float]:
    learner, baselines = Learner(), Baselines()
    live(jobs, learner, baselines)
    limits = learner.scores["told"].figures()
    simple = baselines.figures()
    found = {
        "median_abs_log2_error": limits["median_abs_log2_error"],
        "best_baseline_median_abs_log2_error": min(simple.values()),
        "coverage_p10_p90_pct": limits["p10_p90_pct"],
        "coverage_p50_p90_pct": limits["p50_p90_pct"],
        "pinball": limits["pinball"],
        **{f"{base}_median_abs_log2_error": error for base, error in simple.items()},
    }
    for model in ("history", "boosted"):
        alone = learner.scores[model].figures()
        found |= {
            f"{model}_{key}": alone[key] for key in ("median_abs_log2_error", "pinball") if alone
        }
    return {f"{name}_{key}": value for key, value in found.items() if not math.isnan(value)}
