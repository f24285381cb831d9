"""A scenario through the shipped engine, and how its work fared, queue by queue and priority by priority."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scheduling.engine.model import MILLI, Action
from scheduling.simulation.loop.life import Jobs
from scheduling.simulation.loop.lives import live_submissions
from scheduling.simulation.run.jobs import Submission

from .document import Scenario
from .model import Organisation
from .stream import flows_of, generate

MOST_WORKLOADS = 200_000
"""A life of so many takes minutes."""


class TooMuchWorkError(ValueError):
    """More would be drawn than a command lives through."""


@dataclass(frozen=True, slots=True)
class QueueOutcome:
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


def play(scenario: Scenario, days: float, seed: int) -> list[QueueOutcome]:
    """Draws work for so many days from ``cluster.now`` and goes on until all has ended. The same arguments
    give the same figures. Raises TooMuchWorkError."""
    count = expected(scenario.organisation, days)
    if count > MOST_WORKLOADS:
        raise TooMuchWorkError(
            f"found {count:,.0f} workloads in {days:g} days, expected at most {MOST_WORKLOADS:,}; "
            "lower load or days, or let work be longer"
        )
    cluster = scenario.cluster
    work = list(generate(scenario.organisation, cluster.now, days, seed))
    life = live_submissions(cluster, work)
    resized = Counter(act.job for act in life.acts() if act.action in (Action.GROW, Action.SHRINK))
    return fared(work, life.jobs, resized)


def expected(organisation: Organisation, days: float) -> float:
    """Workloads in so many days, of services at most."""
    per_hour = sum(flow.per_hour * flow.kind.mean_sweep for flow in flows_of(organisation))
    return 24 * days * (per_hour + sum(service.most for service in organisation.services))


def fared(work: Sequence[Submission], jobs: Jobs, resized: Mapping[int, int]) -> list[QueueOutcome]:
    """In order of queue, then priority class. ``resized``: how often, by number of the job."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, one in enumerate(work):
        groups[one.workload.queue, one.workload.priority_class].append(number)
    return [row_of(*key, jobs, group, resized) for key, group in sorted(groups.items())]


def row_of(
    queue: str, priority_class: str, jobs: Jobs, group: list[int], resized: Mapping[int, int]
) -> QueueOutcome:
    started = [number for number in group if jobs.first[number] >= 0]
    waits = jobs.first[started] - jobs.submit[started]
    return QueueOutcome(
        queue=queue,
        priority_class=priority_class,
        workloads=len(group),
        not_started=len(group) - len(started),
        avg_wait_s=round(float(np.mean(waits)), 1) if started else 0.0,
        p99_wait_s=round(float(np.percentile(waits, 99)), 1) if started else 0.0,
        gpu_hours=round(float(jobs.gpu_s[group].sum()) / MILLI / 3600, 1),
        evictions=int(jobs.evictions[group].sum()),
        resized=sum(resized[number] for number in group),
    )
