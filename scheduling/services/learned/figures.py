"""What one life of a window tells of an order: how long work waited that it orders, and what it must keep."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from scheduling.simulation.ahead.compare import Lived, late_each
from scheduling.simulation.ahead.period import Judged
from scheduling.simulation.learning.judging import BOUNDS as SHIPPED
from scheduling.simulation.replications import Verdict, compare

Floats = npt.NDArray[np.float64]
WAIT = "avg_wait_s"
OTHERS = "others_wait_s"
MOST_OF_ONE = "max_evictions_of_a_job"
"""Of it the most over all lives counts, of the others the mean."""
BOUNDS: Mapping[str, float] = {**SHIPPED, OTHERS: 0.0}
"""What is always allowed; above it, only what the order that decides has already."""
MORE = 1.1
"""So many times what the order that decides has is too much, however much lives differ."""


def of_life(found: Judged, own: Judged, ordered: Collection[str]) -> dict[str, float]:
    """``own`` lived the same draws with every queue on its nominal quota alone; ``ordered`` are the queues
    that give out by merit. Seconds that their work waited, and that of the others; the names of ``BOUNDS``.
    """
    lived = found.lived
    jobs, held = max(1, lived.wait_s.size), max(1.0, lived.held_gpu_s)
    mine = np.array([queue in ordered for queue in lived.queue], np.bool_)
    told = {
        WAIT: _mean(lived.wait_s[mine]),
        OTHERS: _mean(lived.wait_s[~mine]),
        "unfair_pct": 100 * float(late_each(lived, own.lived).sum()) / jobs,
        "worst_queue_ratio": _worst_ratio(lived, own.lived),
        "evictions_per_job": lived.evictions / jobs,
        "lost_gpu_hours_pct": 100 * lived.lost_gpu_s / held,
        MOST_OF_ONE: float(found.most_evictions),
    }
    return {name: round(value, 4) for name, value in told.items()}


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0


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


def passed(
    mine: Sequence[Mapping[str, float]], now: Sequence[Mapping[str, float]], comparisons: int
) -> list[str]:
    """The bounds that are passed by lives ``mine``; ``now`` are the same lives under the order that decides.

    Above its bound a figure passes it where it is more than a tenth above what that order has, or above it
    by more than noise. The most evictions of one job are an extreme of few lives: of them noise alone tells.
    """
    figures, base = bounded(mine), bounded(now)
    most = most_allowed(base)
    above = [name for name in BOUNDS if figures[name] > most[name] + 1e-9]
    return [
        name
        for name in above
        if (name != MOST_OF_ONE and figures[name] > MORE * base[name])
        or _is_worse(name, mine, now, comparisons)
    ]


def _is_worse(
    name: str,
    mine: Sequence[Mapping[str, float]],
    now: Sequence[Mapping[str, float]],
    comparisons: int,
) -> bool:
    told = compare([life[name] for life in now], [life[name] for life in mine], comparisons)
    return told.verdict is Verdict.WORSE
