"""The demand: the description from which a stream of workloads is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import NormalDist
from zoneinfo import ZoneInfo

from scheduling.engine.model import Topology
from scheduling.simulation.run.jobs import CHECKPOINT_S

QUANTILES = 2000
ANYWHERE = Topology()
UTC = ZoneInfo("UTC")


class Rhythm(StrEnum):
    """When people submit this kind of work, over the hours of a local week."""

    OFFICE = "office"
    EVENING = "evening"
    FLAT = "flat"


@dataclass(frozen=True, slots=True)
class Size:
    """A gang: ``members`` pods with ``gpus`` whole GPUs each; ``weight`` against the other sizes.

    With ``most`` it is elastic: it starts with ``members`` and does its work sooner with up to ``most``; run
    times are those with ``most``.
    """

    members: int
    gpus: int
    weight: float = 1.0
    most: int | None = None

    @property
    def most_members(self) -> int:
        return self.members if self.most is None else self.most

    @property
    def total_gpus(self) -> int:
        """With all its members."""
        return self.most_members * self.gpus


@dataclass(frozen=True, slots=True)
class RunTime:
    """Log-normal around ``median_s`` with ``sigma`` (of the natural logarithm), cut at both ends."""

    median_s: float
    sigma: float
    least_s: int = 60
    most_s: int = 7 * 86_400

    def at(self, quantile: float) -> int:
        """Seconds below which this share of run times lies."""
        seconds = self.median_s * math.exp(self.sigma * NormalDist().inv_cdf(quantile))
        return round(min(self.most_s, max(self.least_s, seconds)))

    def mean_s(self) -> float:
        """Mean with the cuts, from evenly spaced quantiles."""
        return sum(self.at((i + 0.5) / QUANTILES) for i in range(QUANTILES)) / QUANTILES


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of work. ``names`` are stems of workload names; ``on`` the classes it can run on.

    ``sweep`` is (chance that a submission is a sweep, fewest, most workloads in it). ``failing`` and
    ``cancelled`` are the chances that it ends early, at a random point of its run time.
    """

    name: str
    names: tuple[str, ...]
    priority_classes: tuple[tuple[str, float], ...]
    run_time: RunTime
    sizes: tuple[Size, ...]
    on: tuple[str, ...]
    rhythm: Rhythm = Rhythm.OFFICE
    checkpoint_s: int | None = CHECKPOINT_S
    topology: Topology = ANYWHERE
    sweep: tuple[float, int, int] = (0.0, 1, 1)
    failing: float = 0.08
    cancelled: float = 0.03
    cpus_per_gpu: int = 8
    memory_gib_per_gpu: int = 64

    @property
    def mean_sweep(self) -> float:
        """Workloads per submission."""
        chance, fewest, most = self.sweep
        return 1 + chance * ((fewest + most) / 2 - 1)

    def mean_gpu_s(self) -> float:
        """GPU-seconds of one workload; half of the time of those that end early is not used."""
        weights = sum(size.weight for size in self.sizes)
        gpus = sum(size.weight * size.total_gpus for size in self.sizes) / weights
        return gpus * self.run_time.mean_s() * (1 - (self.failing + self.cancelled) / 2)


@dataclass(frozen=True, slots=True)
class Source:
    """A queue that work comes to. ``demand``: class -> weight of its share of that class's load.

    ``kinds`` are weighed by GPU time: a kind of weight 3 takes three times the GPU-hours of one of weight 1.
    ``users`` submit ever less down the list. ``fallback``: classes a workload accepts after its first.
    """

    queue: str
    users: tuple[str, ...]
    demand: Mapping[str, float]
    kinds: tuple[tuple[Kind, float], ...]
    fallback: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Service:
    """Inference with ``least`` to ``most`` replicas of ``gpus`` whole GPUs, which follow the hours of
    ``rhythm``."""

    name: str
    queue: str
    user: str
    priority_class: str
    gpu_class: str
    gpus: int
    least: int
    most: int
    rhythm: Rhythm = Rhythm.OFFICE
    noise: float = 0.0
    """Standard deviation of the logarithm of an hour's demand."""


@dataclass(frozen=True, slots=True)
class Organisation:
    """``capacity_gpus``: class -> GPUs. ``load``: mean GPUs that sources ask for over capacity, all week;
    what ``services`` ask for comes on top.

    At 0.9 and more, queues form on working days and drain at night and at weekends.
    """

    sources: tuple[Source, ...]
    capacity_gpus: Mapping[str, float]
    load: float = 0.95
    zone: ZoneInfo = UTC
    services: tuple[Service, ...] = ()
