"""From replays to an answer: the curve of the P90 wait against GPUs, and how many hold an SLO.

What was replayed is told as it came. More GPUs can wait longer in a replay, because chance and the limits of
queues decide as well; such a curve is told as uneven and never smoothed. How long work
really waited is counted as a study counts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from scheduling.models import MILLI, Cluster, Outcome, Queue, Result, Study, Workload
from scheduling.models.queues import below
from scheduling.services.studies.capacity.ladder import way_of

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
class NeededGpus:
    """The fewest GPUs with which the median of the replays holds an SLO, and with which the lower and the
    upper edge of their band do; None: not even the most that were tried."""

    gpus: float | None
    low: float | None
    high: float | None
    is_uneven: bool
    """More GPUs than that were tried and do not hold it."""


def needed(rungs: Iterable[Rung], slo_s: float) -> NeededGpus:
    """Of ``rungs`` in any order. One rung more never makes any of the three larger."""
    order = sorted(rungs, key=lambda rung: rung.gpus)
    middle = _fewest(order, [rung.median_s for rung in order], slo_s)
    above = [rung for rung in order if middle is not None and rung.gpus > middle]
    return NeededGpus(
        gpus=middle,
        low=_fewest(order, [rung.low_s for rung in order], slo_s),
        high=_fewest(order, [rung.high_s for rung in order], slo_s),
        is_uneven=any(rung.median_s > slo_s for rung in above),
    )


def _fewest(order: Sequence[Rung], waits_s: Sequence[float], slo_s: float) -> float | None:
    enough = (rung.gpus for rung, s in zip(order, waits_s, strict=True) if s <= slo_s)
    return next(enough, None)


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


def curves_of(study: Study) -> list[Curve]:
    """One of each class."""
    found: dict[str, dict[int, Mapping[str, Sequence[float]]]] = defaultdict(dict)
    rows = Result.objects.filter(variant__study=study).exclude(done_at=None)
    for letter, seed, figures in rows.order_by("seed").values_list(
        "variant__letter", "seed", "figures"
    ):
        found[letter][seed] = figures
    return [curve_of(one, found, study) for one in study.basis.get("curves", ())]


def curve_of(
    facts: Mapping[str, Any],
    found: Mapping[str, Mapping[int, Mapping[str, Sequence[float]]]],
    study: Study,
) -> Curve:
    """``found`` are figures by variant and seed. Replays that not every rung has had are left out."""
    name = facts["gpu_class"]
    lives = [found.get(way_of(name, nodes), {}) for nodes, _ in facts["rungs"]]
    seeds = sorted(set.intersection(*(set(one) for one in lives))) if lives else []
    rungs = tuple(
        Rung(nodes, gpus / MILLI, tuple(of[seed][name][1] for seed in seeds))
        for (nodes, gpus), of in zip(facts["rungs"], lives, strict=True)
    )
    return Curve(
        gpu_class=name,
        installed=facts["installed"] / MILLI,
        node_gpus=facts["node_gpus"] / MILLI,
        rungs=rungs if seeds else (),
        recorded_p90_s=facts["recorded_p90_s"],
        workloads=facts["workloads"],
        step_gpus=study.question["step_gpus"] / MILLI,
        is_quota=study.queue_id is not None,
    )


@dataclass(frozen=True, slots=True)
class RecordedWaits:
    p90_s: float
    workloads: int


def recorded(
    cluster: Cluster, begin: datetime, end: datetime, queue: Queue | None = None
) -> Mapping[str, RecordedWaits]:
    """GPU class -> of the work submitted in [begin, end) that asked for it first; seconds. Of ``queue`` and
    all below it, where one is given.

    Work that had not started by ``end`` waited until then; what was cancelled before it started is left out.
    """
    rows = Workload.objects.filter(
        cluster=cluster, submitted_at__gte=begin, submitted_at__lt=end, gpus__gt=0
    ).exclude(outcome=Outcome.CANCELLED, first_started_at=None)
    if queue is not None:
        rows = rows.filter(below(queue.cluster_id, queue.path, on="queue__"))
    known = set(cluster.gpu_classes.values_list("name", flat=True))
    waits: dict[str, list[float]] = defaultdict(list)
    for wished, submitted, started in rows.order_by().values_list(
        "gpu_classes", "submitted_at", "first_started_at"
    ):
        first = next((name for name in wished if name in known), "")
        until = end if started is None else min(started, end)
        waits[first].append((until - submitted).total_seconds())
    return {
        name: RecordedWaits(float(np.percentile(found, 90)), len(found))
        for name, found in waits.items()
    }
