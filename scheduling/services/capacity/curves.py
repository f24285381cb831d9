"""From replays to an answer: the curve of the P90 wait against GPUs, and how many hold an SLO.

What was replayed is told as it came. More GPUs can wait longer in a replay, because chance and the limits of
queues decide as well; such a curve is told as uneven and never smoothed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduling.models import MILLI, CapacityCurve, CapacityPoint, CapacityStudy

MIDDLE = (5, 95)
"""Percentiles of the replays between which the band lies."""
LEAST_REPLAYS = 5
"""With fewer no figure is told."""
LEAST_WORKLOADS = 20
"""With fewer a P90 says nothing."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One number of GPUs, ``nodes`` steps from what there is: P90 wait in seconds of each replay, in the
    order of their seeds."""

    nodes: int
    gpus: float
    p90_s: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return float(np.median(self.p90_s))

    @property
    def low_s(self) -> float:
        return float(np.percentile(self.p90_s, MIDDLE[0]))

    @property
    def high_s(self) -> float:
        return float(np.percentile(self.p90_s, MIDDLE[1]))


@dataclass(frozen=True, slots=True)
class Needed:
    """The fewest GPUs with which the median of the replays holds an SLO, and with which the lower and the
    upper edge of their band do; None: not even the most that were tried."""

    gpus: float | None
    low: float | None
    high: float | None
    is_uneven: bool
    """More GPUs than that were tried and do not hold it."""


def needed(rungs: Iterable[Rung], slo_s: float) -> Needed:
    """Of ``rungs`` in any order. One rung more never makes any of the three larger."""
    order = sorted(rungs, key=lambda rung: rung.gpus)
    middle = _fewest(order, [rung.median_s for rung in order], slo_s)
    above = [rung for rung in order if middle is not None and rung.gpus > middle]
    return Needed(
        gpus=middle,
        low=_fewest(order, [rung.low_s for rung in order], slo_s),
        high=_fewest(order, [rung.high_s for rung in order], slo_s),
        is_uneven=any(rung.median_s > slo_s for rung in above),
    )


def _fewest(order: Sequence[Rung], waits_s: Sequence[float], slo_s: float) -> float | None:
    held = (rung.gpus for rung, s in zip(order, waits_s, strict=True) if s <= slo_s)
    return next(held, None)


@dataclass(frozen=True, slots=True)
class Curve:
    """Rungs have the same seeds each; GPUs are numbers of GPUs."""

    gpu_class: str
    installed: float
    node_gpus: float
    rungs: tuple[Rung, ...]
    recorded_p90_s: float | None
    workloads: int
    step_gpus: float = 0
    """Between its rungs; 0 is a node."""
    is_quota: bool = False
    """Whether ``installed`` is a queue's nominal quota, and the work lived that of the queue alone."""

    @property
    def replays(self) -> int:
        return len(self.rungs[0].p90_s) if self.rungs else 0

    @property
    def is_told(self) -> bool:
        """Whether there is enough to rest a figure on."""
        return self.replays >= LEAST_REPLAYS and self.workloads >= LEAST_WORKLOADS

    @property
    def as_it_is(self) -> Rung:
        """Raises StopIteration where nothing was replayed yet."""
        return next(rung for rung in self.rungs if not rung.nodes)

    def rung(self, gpus: float | None) -> Rung | None:
        return next((rung for rung in self.rungs if rung.gpus == gpus), None)


def curve_of(
    row: CapacityCurve, points: Iterable[CapacityPoint], study: CapacityStudy | None = None
) -> Curve:
    """``points`` of ``row``; ``study`` says of what steps it is (none: nodes of all work). Replays that not
    every rung has had are left out."""
    found: dict[int, dict[int, float]] = defaultdict(dict)
    for point in points:
        found[point.seed][point.nodes] = point.p90_s
    seeds = [seed for seed in sorted(found) if all(nodes in found[seed] for nodes, _ in row.rungs)]
    rungs = tuple(
        Rung(nodes, gpus / MILLI, tuple(found[seed][nodes] for seed in seeds))
        for nodes, gpus in row.rungs
    )
    return Curve(
        gpu_class=row.gpu_class.name,
        installed=row.installed / MILLI,
        node_gpus=row.node_gpus / MILLI,
        rungs=rungs if seeds else (),
        recorded_p90_s=row.recorded_p90_s,
        workloads=row.workloads,
        step_gpus=study.step_gpus / MILLI if study else 0,
        is_quota=study is not None and study.queue_id is not None,
    )
