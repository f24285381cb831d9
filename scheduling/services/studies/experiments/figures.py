"""The figures of one replay: over all, and by queue. Waits are seconds, the rest per cent, counts, GPU-hours
and money of the cluster's currency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduling.engine import model as m
from scheduling.simulation.ahead.compare import WindowOutcome, late_each
from scheduling.simulation.ahead.period import PeriodOutcome

Json = dict[str, Any]
HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class StudyFigure:
    """``unit``: "wait" seconds shown as h:min, "%", "", "GPU-hours" or "money"."""

    key: str
    name: str
    unit: str
    lower_is_better: bool = True
    drawn: bool = True
    """Whether it is a column of the picture, not of the table alone."""


FIGURES = (
    StudyFigure("avg_wait_s", "Average wait", "wait"),
    StudyFigure("p90_wait_s", "P90 wait", "wait"),
    StudyFigure("utilization_pct", "Utilization", "%", lower_is_better=False),
    StudyFigure("unfair_pct", "Unfair jobs", "%"),
    StudyFigure("evictions", "Evictions", ""),
    StudyFigure("lost_gpu_hours", "Lost", "GPU-hours"),
    StudyFigure("cost", "Cost of what was held", "money", drawn=False),
)
"""Each compared with A; the promise kept is what unfair jobs leave of 100 %."""
BY_QUEUE = (
    "jobs",
    "avg_wait_s",
    "p90_wait_s",
    "unfair_pct",
    "evictions",
    "lost_gpu_hours",
    "held_gpu_hours",
    "cost",
)


def of_replay(
    found: PeriodOutcome,
    own: PeriodOutcome,
    world: m.Snapshot,
    prices: Mapping[str, float],
    length_s: float,
) -> tuple[Json, dict[str, Json]]:
    """``own`` lived the same draws on each queue's nominal quota alone; the period is ``length_s`` long.
    (over all, by queue)."""
    late = late_each(found.lived, own.lived)
    queues = np.array(found.lived.queue)
    everything = _waits(found.lived, late, np.ones(len(queues), np.bool_)) | {
        "utilization_pct": _utilization(found, world, length_s),
        "evictions": found.lived.evictions,
        "lost_gpu_hours": found.lived.lost_gpu_s / HOUR_S,
        "cost": _cost(found.held_gpu_s, prices),
    }
    names = sorted({*found.lived.queue, *(queue for queue, _ in found.held_gpu_s)})
    return _rounded(everything), {
        name: _rounded(_of_queue(name, found, late, queues == name, prices)) for name in names
    }


def _of_queue(
    name: str, found: PeriodOutcome, late: np.ndarray, mine: np.ndarray, prices: Mapping[str, float]
) -> Json:
    gpu_s = {place: value for place, value in found.held_gpu_s.items() if place[0] == name}
    return _waits(found.lived, late, mine) | {
        "jobs": int(mine.sum()),
        "evictions": found.evictions.get(name, 0),
        "lost_gpu_hours": found.lost_gpu_s.get(name, 0.0) / HOUR_S,
        "held_gpu_hours": sum(gpu_s.values()) / HOUR_S,
        "cost": _cost(gpu_s, prices),
    }


def _waits(lived: WindowOutcome, late: np.ndarray, mine: np.ndarray) -> Json:
    wait_s = lived.wait_s[mine]
    if not wait_s.size:
        return {"avg_wait_s": 0.0, "p90_wait_s": 0.0, "unfair_pct": 0.0}
    return {
        "avg_wait_s": float(wait_s.mean()),
        "p90_wait_s": float(np.percentile(wait_s, 90)),
        "unfair_pct": 100 * float(late[mine].mean()),
    }


def _utilization(found: PeriodOutcome, world: m.Snapshot, length_s: float) -> float:
    """Held of what was ready, per cent of the period's GPU-seconds."""
    ready = sum(node.gpus - node.foreign_gpus for node in world.nodes if node.ready) / m.MILLI
    return 100 * found.lived.held_gpu_s / (ready * length_s) if ready else 0.0


def _cost(held_gpu_s: Mapping[tuple[str, str], float], prices: Mapping[str, float]) -> float:
    """At the price of the class that the work names first; work that names none costs the mean."""
    mean = sum(prices.values()) / len(prices) if prices else 0.0
    return sum(prices.get(c, mean) * value / HOUR_S for (_, c), value in held_gpu_s.items())


def _rounded(figures: Mapping[str, float]) -> Json:
    return {name: round(value, 4) for name, value in figures.items()}
