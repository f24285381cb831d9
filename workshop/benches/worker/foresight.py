"""What looking ahead costs and how right it is, on the Philly trace: ``what-if`` and ``eta``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from scheduling.services.ledger.past import LedgerPast
from scheduling.services.studies.whatif.changes import read
from scheduling.services.studies.whatif.now import at_once
from scheduling.services.studies.whatif.replay import ReplayResult, replayed
from scheduling.simulation.traces import Trace
from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.benches.engine.registry import busy_months
from workshop.compare.judgement import FIRST_OF_NOVEMBER_S, SEED, judge, told_over
from workshop.simulator.replay import DEFAULT_POLICY, GPU_CLASS, pool, submissions

NODES, TIGHT = 72, 48
"""On the second the week's work waits for days, which is what a replay takes longest for."""
WEEK_S = 7 * 86400
JOBS = 8_000
REPEATS = 5


def bench_what_if(traces: Path, progress: Progress) -> Outcome:
    """One quota edit: planned at once, and seven days lived with it and without."""
    trace = busy_months(traces)
    week = last_week_of(trace, JOBS)
    progress(f"{len(week)} jobs of seven days; a run before loads the kernels")
    ask(week, NODES)
    return Outcome(
        measured=timed(week, NODES, "") | timed(week, TIGHT, f"pooled{TIGHT}_"),
        inputs=trace.checksums(),
        notes=[
            "s: CPU seconds of one core, median of five, from the change document to both sides' figures:"
            " its reading, two plans at once, jobs as workloads, four lives with a plan at every event: both"
            " sides, and either with each queue on its own quota",
            f"s: {NODES} nodes; the last seven days of the two months in which {JOBS:,} jobs arrive",
        ],
    )


def last_week_of(trace: Trace, jobs: int) -> Trace:
    """The latest seven days with so many arrivals; all of a trace that has no such."""
    first = np.searchsorted(trace.submit_s, trace.submit_s - WEEK_S)
    counts = np.arange(1, len(trace) + 1) - first
    busy = np.flatnonzero(counts >= jobs)
    last = int(busy[-1]) if busy.size else len(trace) - 1
    return trace.take(np.arange(int(first[last]) if busy.size else 0, last + 1))


def timed(week: Trace, nodes: int, prefix: str) -> dict[str, float]:
    """Seconds from the question to its answer, and what the answer says of all queues."""
    spent, found = [], None
    for _ in range(REPEATS):
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        found = ask(week, nodes)
        spent.append((time.process_time() - cpu_s, time.perf_counter() - wall_s))
    assert found is not None  # noqa: S101 - it was asked
    p90_s = found.waits[-1].p90_s
    cpu_s, wall_s = (float(np.median(column)) for column in zip(*spent, strict=True))
    return {
        f"{prefix}s": round(cpu_s, 3),
        f"{prefix}wall_s": round(wall_s, 3),
        f"{prefix}jobs": found.jobs,
        f"{prefix}p90_wait_before_s": round(p90_s.before, 1),
        f"{prefix}p90_wait_after_s": round(p90_s.after, 1),
    }


def ask(week: Trace, nodes: int) -> ReplayResult:
    """What the service does for one edit of the largest queue's nominal, without waiting for its own turn."""
    largest = max(week.queue_nodes, key=lambda name: week.queue_nodes[name])
    document = [
        {
            "kind": "quota",
            "queue": largest,
            "gpu_class": GPU_CLASS,
            "nominal_gpus": 240,
            "weight": 30,
        }
    ]
    changes = read(document)
    jobs = tuple(submissions(week))
    template = pool(week, nodes, DEFAULT_POLICY)
    begin, end = jobs[0].submitted, jobs[-1].submitted
    first = replace(template, now=begin, workloads=(jobs[0].workload,))
    at_once(first, changes)
    return replayed(template, LedgerPast(begin, end, jobs, 0), changes, replays=0)


def bench_eta(traces: Path, progress: Progress) -> Outcome:
    """Bands of starts told at submission and hourly while work waits, held against the replay."""
    trace = busy_months(traces)
    forecasts, truth = told_over(trace, NODES, progress)
    october = judge(forecasts, truth, trace, until_s=FIRST_OF_NOVEMBER_S)
    november = judge(forecasts, truth, trace, since_s=FIRST_OF_NOVEMBER_S)
    measured = dict(november)
    measured |= {f"october_{name}": value for name, value in october.items()}
    return Outcome(
        measured=measured,
        inputs=trace.checksums(),
        seeds=[SEED],
        notes=[
            "november; every setting was chosen on october",
            "of jobs that wait, at sampled moments; error: |start - P50| / wait of waits over 10 min",
        ],
    )
