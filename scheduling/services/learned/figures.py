"""What one life of a window tells of an order: how long work waited, and what fairness is bounded by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduling.engine.compile.structs import Floats
from scheduling.simulation.ahead.compare import Lived, late_each
from scheduling.simulation.ahead.period import Judged
from scheduling.simulation.learning.judging import BOUNDS

WAIT = "avg_wait_s"
MOST_OF_ONE = "max_evictions_of_a_job"
"""Of it the most over all lives counts, of the others the mean."""


def of_life(found: Judged, own: Judged) -> dict[str, float]:
    """``own`` lived the same draws with every queue on its nominal quota alone. Waits in seconds of all work
    that counts; the names of ``BOUNDS``."""
    jobs = max(1, found.lived.wait_s.size)
    held = max(1.0, found.lived.held_gpu_s)
    late = late_each(found.lived, own.lived)
    told = {
        WAIT: float(found.lived.wait_s.mean()) if found.lived.wait_s.size else 0.0,
        "unfair_pct": 100 * float(late.sum()) / jobs,
        "worst_queue_ratio": _worst_ratio(found.lived, own.lived),
        "evictions_per_job": found.lived.evictions / jobs,
        "lost_gpu_hours_pct": 100 * found.lived.lost_gpu_s / held,
        MOST_OF_ONE: float(found.most_evictions),
    }
    return {name: round(value, 4) for name, value in told.items()}


def _worst_ratio(shared: Lived, own: Lived) -> float:
    """The largest, over queues, of the mean completion time to that on the own quota alone."""
    last_s = max(shared.end_s.max(initial=0), own.end_s.max(initial=0))
    took, alone = (_took_s(each, int(last_s)) for each in (shared, own))
    names = np.array(shared.queue)
    ratios = [
        float(took[names == name].mean() / max(1.0, alone[names == name].mean()))
        for name in sorted(set(shared.queue))
    ]
    return max(ratios, default=0.0)


def _took_s(lived: Lived, last_s: int) -> Floats:
    """What has not ended is taken to end with the window."""
    took: Floats = np.where(lived.end_s >= 0, lived.end_s, last_s) - lived.submit_s.astype(float)
    return took


def bounded(lives: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The bounded figures over several lives."""
    return {
        name: max(life[name] for life in lives)
        if name == MOST_OF_ONE
        else sum(life[name] for life in lives) / len(lives)
        for name in BOUNDS
    }


def most_allowed(now: Mapping[str, float]) -> dict[str, float]:
    """The bounds of a window: those of ``BOUNDS``, or what the order that decides has there already."""
    return {name: max(bound, now[name]) for name, bound in BOUNDS.items()}


def passed(figures: Mapping[str, float], most: Mapping[str, float]) -> list[str]:
    return [name for name in BOUNDS if figures[name] > most[name] + 1e-9]
