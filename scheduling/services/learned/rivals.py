"""Orders that the engine cannot be, which a learned one is held against as well, where they can be lived."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from scheduling.engine import model as m
from scheduling.models import LearnedOrder
from scheduling.services.learned.figures import WAIT
from scheduling.simulation.ahead.period import Period
from scheduling.simulation.ahead.rivals import can_live, waited_s
from scheduling.simulation.rivals.registry import RULES

NAMES: Mapping[str, str] = {"gittins": "Gittins index", "native": "Native scheduler"}
SAYS: Mapping[str, str] = {"gittins": "evicts, no shares", "native": "no gangs, no shares"}
Json = dict[str, Any]


def on(world: m.Snapshot, period: Period) -> list[Json]:
    """{key, name} of those that can live ``period``."""
    if not can_live(world, period):
        return []
    return [{"key": key, "name": name} for key, name in NAMES.items()]


def are_lived(order: LearnedOrder) -> bool:
    """Whether ``order`` is held against any."""
    return any(one["key"] in NAMES for window in order.windows for one in window["orders"])


def of_life(
    world: m.Snapshot, period: Period, key: str, ordered: Collection[str]
) -> dict[str, float]:
    """The average wait, in seconds, of the judged work in the queues ``ordered``."""
    wait_s = waited_s(world, period, RULES[key])
    mine = np.array(
        [
            counts and job.workload.queue in ordered
            for job, counts in zip(period.jobs, period.judged, strict=True)
        ],
        np.bool_,
    )
    return {WAIT: round(float(wait_s[mine].mean()), 4) if mine.any() else 0.0}
