"""A pass of forecasts over a cluster, in the background.

1. Note what came of earlier forecasts.
2. Read the cluster and what the ledger knows.
3. Live many futures of it with the shipped engine.
4. Correct the bands by past errors, judge which are worth telling, keep them.

It takes its share of one core in the long run (``portal.config.schedule``): a pass that took c CPU seconds is
followed by a rest until c / share have gone by since it began, whatever process made it. What one pass may
take is bounded by ``futures.MOST_LIVED``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from scheduling.cluster.adapters import key_of
from scheduling.engine import model as m
from scheduling.models import MILLI, Cluster, ForecastRun, GpuClass, StartForecast, State, Workload
from scheduling.models.workloads import WAITING
from scheduling.services.snapshot import build as snapshots
from scheduling.services.starts import outcomes, record
from scheduling.services.starts.accuracy import AHEAD_S, NEAR_S, WIDE
from scheduling.services.starts.futures import Ahead, look_ahead
from scheduling.services.starts.history import BOOKED_LATE, StartHistory, known_of
from scheduling.services.starts.movers import movers
from scheduling.simulation.ahead.bands import Band
from scheduling.simulation.ahead.correction import Correction, ForecastKind

TASK = "scheduling.tasks.forecast_starts"
EVERY_S = 20.0
"""Real seconds between passes, where the budget would allow more."""
KNOWN_RUNS = 20
"""With fewer ended runs no time is told."""

TOO_FAR = "Fewer than half of the futures see it start within a week."
TOO_WIDE = "Its possible starts lie too far apart to name a time."
NO_END = "So much that was forecast waits still that nobody knows how late it may get."
TOO_YOUNG = "Too few runs have ended here to know how long they take."
NOT_BY_TIME = "Nothing that only takes time starts it: see why it waits."
TOO_VAGUE = frozenset({TOO_FAR, TOO_WIDE, NO_END})
"""What came of these is learned from as of those that are told."""
OWN_CHANGE = frozenset(
    {"never_fits", "no_such_class", "not_allowed", "misrouted", "held", "run_time_over"}
)
"""Reasons that no wait ends."""
AUTHORS_WORD = frozenset({"not_before", "after_others", "array_at_limit"})
AS_ASKED = "It waits as its author asked; its start is predicted once that is over."


def is_due(run: ForecastRun | None, real_now: datetime) -> bool:
    """Whether the budget allows another pass."""
    if run is None:
        return True
    rest_s = max(EVERY_S, run.cpu_s / settings.WEIR_DUTIES[TASK].share)
    return real_now >= run.began_at + timedelta(seconds=rest_s)


def refresh(cluster: Cluster) -> int:
    """A pass if one is due; how many workloads it told something of.

    Raises ApiError when the cluster does not answer; SnapshotError.
    """
    last = ForecastRun.objects.filter(cluster=cluster).first()
    if not is_due(last, timezone.now()):
        return 0
    began_at, began_s = timezone.now(), time.thread_time()
    outcomes.settle(cluster, _unsettled_since(last, cluster.now()))
    if not Workload.objects.filter(cluster=cluster, state__in=WAITING).exists():
        return _rest(cluster, began_at, began_s)
    snapshot = snapshots.live(cluster)
    known = known_of(cluster, snapshot.now)
    ahead = look_ahead(snapshot, known, checkpoints=_checkpoints(cluster))
    return keep(cluster, snapshot, known, ahead, began_at, time.thread_time() - began_s)


def _unsettled_since(last: ForecastRun | None, now: datetime) -> datetime | None:
    """From when on starts may not be noted yet; None once an hour: some are booked long after they were."""
    if last is None or last.at.hour != now.hour:
        return None
    return last.at - BOOKED_LATE


def _rest(cluster: Cluster, began_at: datetime, began_s: float) -> int:
    """Nothing waits: there is nothing to tell."""
    StartForecast.objects.filter(workload__cluster=cluster).delete()
    cpu_s = time.thread_time() - began_s
    values = {"at": cluster.now(), "began_at": began_at, "cpu_s": cpu_s, "pending": 0}
    values |= {"ends": {}, "moves": []}
    ForecastRun.objects.update_or_create(cluster=cluster, defaults=values)
    return 0


def _checkpoints(cluster: Cluster) -> dict[str, int]:
    rows = Workload.objects.filter(cluster=cluster).exclude(state=State.FINISHED)
    steps = rows.exclude(checkpoint_interval_s=None)
    return {
        key_of(kind, namespace, name): step or 0
        for kind, namespace, name, step in steps.values_list(
            "kind", "namespace", "name", "checkpoint_interval_s"
        )
    }


def keep(
    cluster: Cluster,
    snapshot: m.Snapshot,
    known: StartHistory,
    ahead: Ahead,
    began_at: datetime,
    cpu_s: float,
) -> int:
    """Write the forecasts of ``ahead`` in place of those before.

    All is worked out before the first row is written: a cycle may wait to write its own.
    """
    rows = _rows(cluster)
    predictions = _predictions(cluster, snapshot.now, known, ahead, rows)
    forecasts = [one.row() for one in predictions]
    scored = [
        (one.work, one.raw, one.band, one.gpu_class)
        for one, row in zip(predictions, forecasts, strict=True)
        if not row.why_not or (row.why_not in TOO_VAGUE and math.isfinite(one.raw.p90_s))
    ]
    moves = _moves(snapshot, ahead, rows)
    outcomes.note(cluster, scored, snapshot.now)
    record.note(cluster, forecasts, snapshot.now)
    with transaction.atomic():
        _write(cluster, forecasts)
        _note_run(cluster, known, ahead, rows, snapshot.now, began_at, cpu_s, moves)
    return len(predictions)


def _predictions(
    cluster: Cluster, now: datetime, known: StartHistory, ahead: Ahead, rows: Mapping[str, Workload]
) -> list[_Prediction]:
    correction = outcomes.keep_correction(cluster, now)
    classes = {c.name: c for c in cluster.gpu_classes.all()}
    again = outcomes.told_before(cluster, now)
    runs = dict(zip(ahead.waiting, ahead.runs.tolist(), strict=True))
    return [
        _Prediction(
            rows[name],
            raw,
            correction,
            known,
            classes,
            rows.get(ahead.after.get(name, "")),
            runs[name],
            now,
            first=rows[name].pk not in again,
        )
        for name, raw in ahead.bands().items()
        if name in rows
    ]


def _moves(
    snapshot: m.Snapshot, ahead: Ahead, rows: Mapping[str, Workload]
) -> list[dict[str, Any]]:
    holds = {w.name: w.gpus * sum(w.placement.values()) for w in snapshot.workloads}
    return [
        one.document() | {"workload": rows[one.workload].uid, "run": rows[one.run].uid}
        for one in movers(ahead, holds)
        if one.workload in rows and one.run in rows
    ]


BATCH = 200
COLUMNS = (
    "at", "p50_at", "p90_at", "gpu_class", "after", "run_s", "raw_p50_s", "raw_p90_s", "why_not",
)  # fmt: skip
SAID = ("p50_at", "p90_at", "gpu_class_id", "after_id", "why_not")


def _write(cluster: Cluster, forecasts: Sequence[StartForecast]) -> None:
    """Put ``forecasts`` in place of those before; one that says the same stays, with the time of its pass."""
    before = {
        row.workload_id: row for row in StartForecast.objects.filter(workload__cluster=cluster)
    }
    fresh = []
    for row in forecasts:
        old = before.pop(row.workload_id, None)
        if old is None or any(getattr(old, name) != getattr(row, name) for name in SAID):
            fresh.append(row)
    StartForecast.objects.filter(pk__in=[row.pk for row in before.values()]).delete()
    StartForecast.objects.bulk_create(
        fresh, BATCH, update_conflicts=True, unique_fields=["workload"], update_fields=COLUMNS
    )


def _rows(cluster: Cluster) -> dict[str, Workload]:
    live = Workload.objects.filter(cluster=cluster).exclude(state=State.FINISHED)
    return {
        key_of(row.kind, row.namespace, row.name): row for row in live.select_related("gpu_class")
    }


class _Prediction:
    """What is told of one workload."""

    def __init__(
        self,
        work: Workload,
        raw: Band,
        correction: Correction,
        known: StartHistory,
        classes: Mapping[str, GpuClass],
        after: Workload | None,
        run_s: float,
        now: datetime,
        *,
        first: bool,
    ) -> None:
        self.run_s = run_s
        self.work, self.raw, self.after, self.now = work, raw, after, now
        kind = ForecastKind.of(work.requested_gpus / MILLI, first=first)
        self.band = correction.correct(raw, kind)
        self.why_not = why_not(work, self.band, raw, known.ended)
        wanted: Sequence[str] = work.gpu_classes or list(classes)
        self.gpu_class = next((classes[name] for name in wanted if name in classes), None)

    def row(self) -> StartForecast:
        has_time = not self.why_not
        finite = math.isfinite(self.raw.p90_s)
        return StartForecast(
            workload=self.work,
            at=self.now,
            p50_at=rounded(self.now, self.band.p50_s) if has_time else None,
            p90_at=rounded(self.now, self.band.p90_s) if has_time else None,
            gpu_class=self.gpu_class,
            after=self.after,
            run_s=self.run_s,
            raw_p50_s=self.raw.p50_s if finite else None,
            raw_p90_s=self.raw.p90_s if finite else None,
            why_not=self.why_not,
        )


def rounded(now: datetime, ahead_s: float) -> datetime:
    """As it is told: to the minute within the hour, then to ten minutes, so that it is no news each pass."""
    step_s = 60 if ahead_s < NEAR_S else 600
    at_s = math.ceil((now.timestamp() + ahead_s) / step_s) * step_s
    return datetime.fromtimestamp(at_s, now.tzinfo)


def why_not(work: Workload, band: Band, raw: Band, known_runs: int) -> str:
    """Why no time is told of it; empty where one is."""
    if work.held or work.reason in OWN_CHANGE:
        return NOT_BY_TIME
    if work.reason in AUTHORS_WORD:
        return AS_ASKED
    return too_vague(band, raw, known_runs)


def too_vague(band: Band, raw: Band, known_runs: int) -> str:
    """Why ``band``, which ``raw`` was before its correction, names no time, learned from so many ended runs;
    empty where it does."""
    if known_runs < KNOWN_RUNS:
        return TOO_YOUNG
    if not math.isfinite(band.p50_s) or band.p50_s > AHEAD_S:
        return TOO_FAR
    if not math.isfinite(band.p90_s) or band.p90_s > WIDE * max(band.p50_s, NEAR_S):
        return TOO_WIDE
    if band.p90_s <= band.p50_s and band.p50_s > NEAR_S and raw.p90_s > raw.p50_s:
        return NO_END
    return ""


def _note_run(
    cluster: Cluster,
    known: StartHistory,
    ahead: Ahead,
    rows: Mapping[str, Workload],
    now: datetime,
    began_at: datetime,
    cpu_s: float,
    moves: Sequence[Mapping[str, Any]],
) -> None:
    ends = {
        rows[name].uid: [round(band.p50_s), round(band.p90_s)]
        for name, band in ahead.end_bands().items()
        if name in rows
    }
    values = {
        "at": now,
        "began_at": began_at,
        "cpu_s": cpu_s,
        "futures": ahead.futures,
        "pending": len(ahead.waiting),
        "known_runs": known.ended,
        "known_arrivals": len(known.arrivals),
        "ends": ends,
        "moves": list(moves),
    }
    ForecastRun.objects.update_or_create(cluster=cluster, defaults=values)
