"""Draws workloads from an organisation, hour by hour.

Every hour has dice of its own, seeded by (seed, hour since 1970): a stream can begin at any moment and
meets the same workloads there, and nothing is remembered between hours.

Inference that follows the hour: how many replicas a service wants, and the workloads they are.

A replica is a workload of one pod. It comes at the beginning of an hour that wants more replicas than the one
before and goes after the last hour that wants it; all are deployed anew at DEPLOYED, in local time. Each
hour's noise has dice of its own, so that hours ahead can be asked for from any moment.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import numpy as np
from numpy.random import Generator

from scheduling.engine.model import MILLI, Members, Workload
from scheduling.simulation.run.jobs import Submission

from .model import Kind, Organisation, Service, Source
from .rhythm import factor, week

HOUR_S = 3600
DEPLOYED = 4
"""Hour of the day, a quiet one."""


def replicas(service: Service, number: int, zone: ZoneInfo, seed: int) -> int:
    """Wanted in the hour ``number`` since 1970: ``least`` in the quietest of the week, ``most`` in the
    busiest, in between in proportion to the rhythm, which noise multiplies by exp(normal(0, ``noise``))."""
    hours = week(service.rhythm)
    low, high = min(hours), max(hours)
    level = factor(service.rhythm, hour_at(number), zone)
    part = (level - low) / (high - low) if high > low else 1.0
    if service.noise:
        dice = np.random.default_rng([seed, number, zlib.crc32(service.name.encode())])
        part *= float(np.exp(dice.normal(0.0, service.noise)))
    more = round((service.most - service.least) * part)
    return min(service.most, service.least + more)


def hour_at(number: int) -> datetime:
    return datetime.fromtimestamp(number * HOUR_S, UTC)


def come_in(service: Service, number: int, zone: ZoneInfo, seed: int) -> Iterator[Submission]:
    """The replicas that come at the beginning of that hour, each with how long it will be wanted."""
    wanted = replicas(service, number, zone, seed)
    before = 0 if deploys(number, zone) else replicas(service, number - 1, zone, seed)
    for replica in range(before, wanted):
        until = number + 1
        while not deploys(until, zone) and replicas(service, until, zone, seed) > replica:
            until += 1
        yield submission_of(service, number, replica, (until - number) * HOUR_S)


def deploys(number: int, zone: ZoneInfo) -> bool:
    return hour_at(number).astimezone(zone).hour == DEPLOYED


def submission_of(service: Service, number: int, replica: int, duration_s: int) -> Submission:
    workload = Workload(
        name=f"{service.name}-{number:x}-{replica}",
        queue=service.queue,
        user=service.user,
        priority_class=service.priority_class,
        submitted=hour_at(number) + timedelta(seconds=replica),
        gpus=service.gpus * MILLI,
        members=Members(1, 1),
        gpu_classes=(service.gpu_class,),
    )
    return Submission(workload, duration_s, checkpoint_s=None)


@dataclass(frozen=True, slots=True)
class Flow:
    """One kind of work of one queue on one class; ``per_hour``: mean submissions (sweeps count once)."""

    source: Source
    kind: Kind
    gpu_class: str
    per_hour: float


def generate(
    organisation: Organisation, start: datetime, days: float, seed: int
) -> list[Submission]:
    """All workloads submitted in ``days`` from ``start``, in order; the same for the same arguments."""
    end = start + timedelta(days=days)
    return list(takewhile(lambda s: s.submitted < end, stream(organisation, start, seed)))


def stream(organisation: Organisation, start: datetime, seed: int) -> Iterator[Submission]:
    """The same workloads as ``generate`` from ``start`` on, without end."""
    flows = flows_of(organisation)
    number = int(start.timestamp()) // HOUR_S
    while True:
        for submission in hour_of(organisation, flows, number, seed):
            if submission.submitted >= start:
                yield submission
        number += 1


def flows_of(organisation: Organisation) -> list[Flow]:
    """Rates at which each class is asked for ``load`` x its capacity on average.

    A demand for a class on which none of the source's kinds runs draws nothing.
    """
    flows = []
    for gpu_class, capacity in sorted(organisation.capacity_gpus.items()):
        total = sum(source.demand.get(gpu_class, 0.0) for source in organisation.sources)
        for source in organisation.sources:
            kinds = [(kind, weight) for kind, weight in source.kinds if gpu_class in kind.on]
            weights = sum(weight for _, weight in kinds)
            share = source.demand.get(gpu_class, 0.0) / total if total else 0.0
            for kind, weight in kinds if share else []:
                gpus = organisation.load * capacity * share * weight / weights
                per_hour = gpus * HOUR_S / (kind.mean_gpu_s() * kind.mean_sweep)
                flows.append(Flow(source, kind, gpu_class, per_hour))
    return flows


def hour_of(
    organisation: Organisation, flows: list[Flow], number: int, seed: int
) -> list[Submission]:
    """The submissions of one hour, in order of time, then name."""
    dice = np.random.default_rng([seed, number])
    hour = datetime.fromtimestamp(number * HOUR_S, UTC)
    drawn: list[Submission] = []
    for flow in flows:
        mean = flow.per_hour * factor(flow.kind.rhythm, hour, organisation.zone)
        for _ in range(int(dice.poisson(mean))):
            at = hour + timedelta(seconds=int(dice.integers(HOUR_S)))
            drawn += submitted_at(flow, at, f"{number:x}{len(drawn):02x}", dice)
    for service in organisation.services:
        drawn += come_in(service, number, organisation.zone, seed)
    return sorted(drawn, key=lambda s: (s.submitted, s.workload.name))


def submitted_at(flow: Flow, at: datetime, mark: str, dice: Generator) -> list[Submission]:
    """One workload, or the members of a sweep: same stem, class, size and user, a second apart."""
    kind, source = flow.kind, flow.source
    chance, fewest, most = kind.sweep
    count = int(dice.integers(fewest, most + 1)) if dice.random() < chance else 1
    user = source.users[falling(len(source.users), dice)]
    size = kind.sizes[choose([size.weight for size in kind.sizes], dice)]
    priority = kind.priority_classes[choose([w for _, w in kind.priority_classes], dice)][0]
    stem = kind.names[int(dice.integers(len(kind.names)))]
    drawn = []
    for number in range(count):
        workload = Workload(
            name=f"{stem}-{mark}" + (f"-{number}" if count > 1 else ""),
            queue=source.queue,
            user=user,
            priority_class=priority,
            submitted=at + timedelta(seconds=number),
            gpus=size.gpus * MILLI,
            cpus=size.gpus * kind.cpus_per_gpu * MILLI,
            memory_mib=size.gpus * kind.memory_gib_per_gpu * 1024,
            members=Members(size.members, size.most_members),
            elastic=size.most is not None,
            gpu_classes=(flow.gpu_class, *source.fallback.get(flow.gpu_class, ())),
            topology=kind.topology,
        )
        outcome, duration_s = ending(kind, dice)
        drawn.append(Submission(workload, duration_s, kind.checkpoint_s, outcome=outcome))
    return drawn


def ending(kind: Kind, dice: Generator) -> tuple[str, int]:
    """How it ends and after how many seconds of run time."""
    full_s = kind.run_time.at(float(np.clip(dice.random(), 1e-9, 1 - 1e-9)))
    luck = dice.random()
    if luck >= kind.failing + kind.cancelled:
        return "succeeded", full_s
    return "failed" if luck < kind.failing else "cancelled", max(30, round(full_s * dice.random()))


def choose(weights: list[float], dice: Generator) -> int:
    """A position with the chance of its weight."""
    return int(np.searchsorted(np.cumsum(weights) / sum(weights), dice.random(), side="right"))


def falling(count: int, dice: Generator) -> int:
    """A position with chance in proportion to 1, 1/2, 1/3 … (Zipf): few people submit most work."""
    return choose([1 / (rank + 1) for rank in range(count)], dice)
