"""Inference that follows the hour: how many replicas a service wants, and the workloads they are.

A replica is a workload of one pod. It comes at the beginning of an hour that wants more replicas than the one
before and goes after the last hour that wants it; all are deployed anew at DEPLOYED, in local time. Each
hour's noise has dice of its own, so that hours ahead can be asked for from any moment.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from scheduling.engine.model import MILLI, Members, Workload
from scheduling.simulation.run.jobs import Submission

from .model import Service
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
