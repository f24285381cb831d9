"""Start forecasts of a simulated past, told then and there, so that a demo begins with outcomes.

As on a live cluster: from the snapshot of that moment, from what had ended by then, corrected by what had
come by then.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from portal.demo.past.history import History
from scheduling.engine.model import Action, Phase, Plan, Snapshot
from scheduling.models import Cluster, ForecastOutcome, Workload
from scheduling.services.starts import outcomes
from scheduling.services.starts.futures import look_ahead
from scheduling.services.starts.known import Known, known_from
from scheduling.services.starts.refresh import why_not
from scheduling.simulation.ahead.bands import Band
from scheduling.simulation.ahead.correction import Came, correction_from

EVERY = timedelta(hours=4)
FUTURES = 8
AHEAD_S = 36 * 3600
"""Fewer than on a live cluster: some dozens of passes have to fit into the start of a demo."""


class Foretold(History):
    """Forecasts from ``since`` on, whenever somebody waits who was not told yet."""

    def __init__(self, cluster: Cluster, since: datetime) -> None:
        super().__init__(cluster)
        self._next = since
        self._told: list[ForecastOutcome] = []
        self._by_name: set[str] = set()

    def on_plan(self, now: datetime, snapshot: Snapshot, plan: Plan) -> None:
        super().on_plan(now, snapshot, plan)
        if now < self._next:
            return
        starting = {d.workload for d in plan.decisions if d.action is Action.ADMIT}
        waiting = {w.name for w in snapshot.workloads if w.phase is Phase.PENDING} - starting
        if waiting - self._by_name:
            self._next = now + EVERY
            self._tell(now, snapshot, waiting)

    def known(self, now: datetime) -> Known:
        """What futures are drawn from at ``now``."""
        return known_from(self.workloads.values(), now)

    def _tell(self, now: datetime, snapshot: Snapshot, waiting: set[str]) -> None:
        known = self.known(now)
        ahead = look_ahead(snapshot, known, futures=FUTURES, ahead_s=AHEAD_S)
        correction = correction_from((_came(one, now) for one in self._told), now.timestamp())
        for name, raw in ahead.bands().items():
            work, band = self.workloads[name], correction.correct(raw)
            fresh = name in waiting and not work.first_started_at
            if fresh and not why_not(work, band, known.ended):
                self._note(name, work, raw, band, now)

    def _note(self, name: str, work: Workload, raw: Band, band: Band, now: datetime) -> None:
        classes = (self.classes[c] for c in work.gpu_classes if c in self.classes)
        told = ForecastOutcome(
            workload=work,
            at_submission=name not in self._by_name,
            told_at=now,
            p50_s=band.p50_s,
            p90_s=band.p90_s,
            raw_p50_s=raw.p50_s,
            raw_p90_s=raw.p90_s,
            gpu_class=next(classes, None),
            gpus=work.requested_gpus,
        )
        self._by_name.add(name)
        self._told.append(told)

    @transaction.atomic
    def save(self) -> None:
        """The ledger, then what was told, with what came of it."""
        super().save()
        for one in self._told:
            one.workload_id = one.workload.pk
            earlier = (s for s in self.workloads.values() if _started_before(s, one.told_at))
            waits = outcomes.naive_of(earlier)
            one.naive_s = waits.get(outcomes.size_of(one.workload))
        ForecastOutcome.objects.bulk_create(self._told, batch_size=200)
        outcomes.settle(self.cluster)


def _came(one: ForecastOutcome, now: datetime) -> Came:
    start = one.workload.first_started_at
    return outcomes.came(one, max(one.told_at, start or now), started=start is not None)


def _started_before(work: Workload, at: datetime) -> bool:
    return work.first_started_at is not None and work.first_started_at <= at
