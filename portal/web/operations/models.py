"""What the engine leans on that was learned: which version serves, how old it is, how it held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from portal.display.format import counted
from portal.web.lab.run_times import live_held
from scheduling.models import Cluster, ForecastOutcome, Predictor, PredictorState
from scheduling.services.starts.held import FEW, SCORED, Share

LOOKED_AT = 2000
"""Starts, the latest of 30 days."""
HELD_PCT, BEFORE_P90_PCT = 80, 90
"""What P10 to P90, and P90 alone, should hold."""
BETWEEN = "between P10 and P90"


@dataclass(frozen=True, slots=True)
class Model:
    """``pct`` is what held of ``of``, and should be ``told``; ``since`` is when it began to serve."""

    name: str
    note: str
    since: datetime | None
    share: Share
    means: str
    told: int

    @property
    def is_few(self) -> bool:
        return self.share.of < FEW

    @property
    def verdict(self) -> str:
        """ "too sure" or "too careful" where what was told is outside the interval of what came."""
        low, high = self.share.bounds
        if self.is_few:
            return "too few to say"
        return "too sure" if high < self.told else "too careful" if low > self.told else ""


def models_of(cluster: Cluster) -> list[Model]:
    """Three queries."""
    return [*_run_times(cluster), *_starts(cluster)]


def _run_times(cluster: Cluster) -> Iterator[Model]:
    serving = Predictor.objects.filter(cluster=cluster, status=PredictorState.SERVING)
    one = serving.defer("state", "weighs").first()
    if one is None:
        return
    runs = int(one.calibration.get("runs", 0))
    learned = Share(round(one.calibration.get("p10_p90_pct", 0) / 100 * runs), runs)
    note = f"v{one.version}, learned from {counted(one.runs, 'run')}"
    yield Model("Run times", note, one.served_from, learned, BETWEEN, HELD_PCT)
    due, held = live_held(cluster)
    note = f"the last {counted(due, 'run')} that came due"
    yield Model("Drift of run times", note, None, Share(held, due), BETWEEN, HELD_PCT)


def _starts(cluster: Cluster) -> Iterator[Model]:
    """By GPU class, as told at submission."""
    now = cluster.now()
    rows = ForecastOutcome.objects.filter(
        workload__cluster=cluster,
        at_submission=True,
        started_at__gt=now - SCORED,
        started_at__lte=now,
    ).order_by("-started_at")
    held: dict[str, list[bool]] = {}
    columns = ("gpu_class__name", "told_at", "started_at", "p90_s")
    for name, told_at, started_at, p90_s in rows.values_list(*columns)[:LOOKED_AT]:
        held.setdefault(name or "any class", []).append(
            (started_at - told_at).total_seconds() <= p90_s
        )
    for name, came in sorted(held.items()):
        note = f"{counted(len(came), 'start')} in 30 days"
        share = Share(sum(came), len(came))
        yield Model(f"Starts, {name}", note, None, share, "before P90", BEFORE_P90_PCT)
