"""A forecast as it is said now, the same on pages, in notices, in the API and on objects of the cluster.

A time that has passed is no time to come: past its P50 a start is told by its P90 alone, past that by none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from scheduling.models import StartForecast, Workload
from scheduling.services.starts.accuracy import FEW, Share, held_of
from scheduling.simulation.ahead.bands import horizon

Held = Mapping[tuple[str, int], Share]


@dataclass(frozen=True, slots=True)
class PredictedStart:
    """``p90`` is None where only the place in line is worth telling, ``p50`` also where it has passed;
    ``why_not`` says why."""

    p50: datetime | None
    p90: datetime | None
    at: datetime | None
    hit_rate: Share | None
    why_not: str = ""

    @property
    def band(self) -> tuple[datetime, datetime] | None:
        """P50 and P90, where both are to come."""
        return (self.p50, self.p90) if self.p50 and self.p90 else None

    @property
    def is_told(self) -> bool:
        return self.p90 is not None

    @property
    def is_due(self) -> bool:
        """Whether it may start any moment: half of such starts came sooner."""
        return self.p90 is not None and self.p50 is None

    @property
    def trust(self) -> str:
        """'18 of 20 like it held', or that too few have started."""
        return trust(self.hit_rate)


NO_WORD = PredictedStart(None, None, None, None)


def trust(share: Share | None) -> str:
    """How far a forecast is to be trusted, by those like it whose work has started."""
    if share is None or share.of < FEW:
        return "too few starts like it so far"
    return f"{share.count:,} of {share.of:,} like it held"


DUE = "Its P50 has passed: it may start any moment."
PASSED = "The time that was told has passed; the next pass of forecasts tells it anew."
NOT_YET = "No start is forecast yet: forecasts are made in the background, one after the other."


def said_of(work: Workload, shares: Held | None = None) -> PredictedStart:
    """Of a workload that waits. Two queries without ``held``."""
    row = StartForecast.objects.filter(workload=work).select_related("gpu_class").first()
    known = shares if shares is not None or row is None else held_of(work.cluster, row.at)
    return predicted_start(row, work.cluster.now(), known)


def predicted_start(
    row: StartForecast | None, now: datetime, shares: Held | None = None
) -> PredictedStart:
    """What ``row`` says at ``now``: the one door for whoever shows a predicted start."""
    if row is None:
        return PredictedStart(None, None, None, None, NOT_YET)
    if row.p50_at is None or row.p90_at is None:
        return PredictedStart(None, None, row.at, None, row.why_not)
    if row.p90_at <= now:
        return PredictedStart(None, None, row.at, None, PASSED)
    if row.p50_at <= now:
        return PredictedStart(None, row.p90_at, row.at, _share(row, shares or {}), DUE)
    return PredictedStart(row.p50_at, row.p90_at, row.at, _share(row, shares or {}))


def _share(row: StartForecast, shares: Held) -> Share | None:
    assert row.p50_at is not None  # noqa: S101 - asked of told ones alone
    name = row.gpu_class.name if row.gpu_class else ""
    return like(shares, name, (row.p50_at - row.at).total_seconds())


def like(shares: Held, gpu_class: str, p50_s: float) -> Share | None:
    """Of its class and horizon; where those are few, of its horizon, else of its class."""
    far = horizon(p50_s)
    for key in ((gpu_class, far), ("", far), (gpu_class, -1)):
        share = shares.get(key)
        if share is not None and share.of >= FEW:
            return share
    return None
