"""A scenario through the shipped engine, and how its work fared, queue by queue and priority by priority."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from scheduling.simulation.run.jobs import Job
from scheduling.simulation.run.simulator import simulate

from .document import Scenario
from .model import Organisation
from .stream import flows_of, generate

MOST_WORKLOADS = 200_000
"""A life of so many takes minutes."""


class TooMuchWorkError(ValueError):
    """More would be drawn than a command lives through."""


@dataclass(frozen=True, slots=True)
class Fared:
    """Work of one queue and priority class. Waits are from submission to the first start, of what started;
    ``resized`` counts how often elastic work went on with other members; GPU-hours are those that ended work
    held."""

    queue: str
    priority_class: str
    workloads: int
    not_started: int
    avg_wait_s: float
    p99_wait_s: float
    gpu_hours: float
    evictions: int
    resized: int


def play(scenario: Scenario, days: float, seed: int) -> list[Fared]:
    """Draws work for so many days from ``cluster.now`` and goes on until all has ended. The same arguments
    give the same figures. Raises TooMuchWorkError."""
    count = expected(scenario.organisation, days)
    if count > MOST_WORKLOADS:
        raise TooMuchWorkError(
            f"found {count:,.0f} workloads in {days:g} days, expected at most {MOST_WORKLOADS:,}; "
            "lower load or days, or let work be longer"
        )
    cluster = scenario.cluster
    return fared(simulate(cluster, generate(scenario.organisation, cluster.now, days, seed)).jobs)


def expected(organisation: Organisation, days: float) -> float:
    """Workloads in so many days, of services at most."""
    per_hour = sum(flow.per_hour * flow.kind.mean_sweep for flow in flows_of(organisation))
    return 24 * days * (per_hour + sum(service.most for service in organisation.services))


def fared(jobs: Iterable[Job]) -> list[Fared]:
    """In order of queue, then priority class."""
    groups: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in jobs:
        groups[job.workload.queue, job.workload.priority_class].append(job)
    return [row_of(*key, group) for key, group in sorted(groups.items())]


def row_of(queue: str, priority_class: str, jobs: list[Job]) -> Fared:
    waits = [job.runs[0].start_s - job.submit_s for job in jobs if job.runs]
    return Fared(
        queue=queue,
        priority_class=priority_class,
        workloads=len(jobs),
        not_started=len(jobs) - len(waits),
        avg_wait_s=round(float(np.mean(waits)), 1) if waits else 0.0,
        p99_wait_s=round(float(np.percentile(waits, 99)), 1) if waits else 0.0,
        gpu_hours=round(sum(job.held_gpu_s for job in jobs) / 3600, 1),
        evictions=sum(job.evictions for job in jobs),
        resized=sum(resizes(job) for job in jobs),
    )


def resizes(job: Job) -> int:
    """A run that follows another at once with other members."""
    return sum(
        before.end_s == after.start_s and before.members != after.members
        for before, after in zip(job.runs, job.runs[1:], strict=False)
    )
