"""What would move a start: of whoever waits, the run whose late end most delays it.

Nothing is lived anew: in the futures of a pass the same runs end at other times, and what starts late when
one of them ends late hangs on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduling.services.starts.futures import Ahead

Floats = npt.NDArray[np.float64]

LEAST_FUTURES = 12
MOST_WAITING, MOST_RUNNING = 200, 60
"""Work that waits and starts first, and work that holds most: bounds the work and what chance could feign."""
LATE = 2 / 3
"""A late end is one of the latest third."""
SURE = 5.0
"""Student's t of the rank correlation of end and start from which a run is said to move a start."""
LEAST_S = 600.0
"""A start that moves by less is not told of."""
KEPT = 40


@dataclass(frozen=True, slots=True)
class Mover:
    """By engine names. Seconds from the pass on: the end of ``run`` in the middle and among its latest third;
    the start in the middle, and then."""

    workload: str
    run: str
    end_s: float
    late_end_s: float
    start_s: float
    late_start_s: float

    def document(self) -> dict[str, Any]:
        return {
            name: round(value) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def movers(ahead: Ahead, holds: Mapping[str, int]) -> list[Mover]:
    """At most one for each who waits, what moves most first; ``holds`` are the GPUs of each that runs."""
    if ahead.futures < LEAST_FUTURES or not ahead.running:
        return []
    starts = np.where(ahead.starts < 0, np.inf, ahead.starts.astype(np.float64))
    middle = np.median(starts, axis=0)
    waits = np.argsort(middle, kind="stable")[:MOST_WAITING]
    waits = waits[np.isfinite(starts[:, waits]).all(axis=0) & (middle[waits] > 0)]
    order = sorted(range(len(ahead.running)), key=lambda i: (-holds.get(ahead.running[i], 0), i))
    runs = np.array(order[:MOST_RUNNING])
    if not waits.size:
        return []
    sure = _t(starts[:, waits], ahead.ends[:, runs])
    found = []
    for at, i in enumerate(waits.tolist()):
        j = int(np.argmax(sure[at]))
        if sure[at, j] >= SURE:
            found.append(_mover(ahead, starts[:, i], i, int(runs[j])))
    moving = [one for one in found if one.late_start_s - one.start_s >= LEAST_S]
    return sorted(moving, key=lambda one: one.start_s - one.late_start_s)[:KEPT]


def _mover(ahead: Ahead, starts: Floats, i: int, j: int) -> Mover:
    ends = ahead.ends[:, j]
    late = ends >= np.quantile(ends, LATE)
    return Mover(
        workload=ahead.waiting[i],
        run=ahead.running[j],
        end_s=float(np.median(ends)),
        late_end_s=float(np.median(ends[late])),
        start_s=float(np.median(starts)),
        late_start_s=float(np.median(starts[late])),
    )


def _t(starts: Floats, ends: Floats) -> Floats:
    """Of Spearman's correlation of each start with each end."""
    a, b = _standard(_ranks(starts)), _standard(_ranks(ends))
    n = len(starts)
    rho = np.clip(a.T @ b / n, -1 + 1e-12, 1 - 1e-12)
    return rho * np.sqrt((n - 2) / (1 - rho**2))


def _ranks(table: Floats) -> Floats:
    """Down each column, the mean of those that are equal."""
    above = (table[:, np.newaxis] > table[np.newaxis]).sum(axis=1)
    same = (table[:, np.newaxis] == table[np.newaxis]).sum(axis=1)
    return above + (same - 1) / 2.0


def _standard(ranks: Floats) -> Floats:
    spread = ranks.std(axis=0)
    return (ranks - ranks.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
