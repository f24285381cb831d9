"""Several lives of one replay: the trace, then jittered ones; figures of all as means with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from scheduling.simulation.replications import interval
from scheduling.simulation.traces import Trace
from workshop.rivals.costs import Costs
from workshop.simulator.result import Metrics

from .sharing_lives import jittered


def lived(trace: Trace, count: int, costs: Costs) -> Iterator[tuple[Trace, Costs]]:
    """Life 0 is the trace itself; life k draws its jitter, and the rival its dice, with the seed ``+ k``."""
    for number in range(count):
        each = trace if number == 0 else jittered(trace, costs.seed + number)
        yield each, replace(costs, seed=costs.seed + number)


def means_of(found: Sequence[Metrics]) -> dict[str, Any]:
    """Each figure's mean over the lives; ``half``: name -> half of its 95 % interval, None for one life.

    What is no number (the worst queue's name) is that of life 0.
    """
    rows = [asdict(each) for each in found]
    flat = [row.pop("fairness") | row for row in rows]
    half: dict[str, float | None] = {}
    means: dict[str, Any] = {"jobs": flat[0]["jobs"]}
    for name, first in flat[0].items():
        if name == "jobs":
            continue
        if not isinstance(first, int | float):
            means[name] = first
            continue
        estimate = interval([float(row[name]) for row in flat])
        means[name], half[name] = estimate.mean, estimate.half
    return means | {"half": half}
