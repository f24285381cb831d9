"""Start forecasts of a simulated past, so that a demo begins with outcomes.

As on a live cluster: from the snapshot of that moment, from what had ended by then, corrected by what had
come by then. Nothing later is looked at, so they may be made when the past has been lived.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from scheduling.engine.model import Action, Phase, Plan, Snapshot
from scheduling.models import MILLI, Cluster, ForecastOutcome, GpuClass, Workload
from scheduling.services.starts import outcomes
from scheduling.services.starts.futures import look_ahead
from scheduling.services.starts.history import StartHistory, known_from
from scheduling.services.starts.refresh import why_not
from scheduling.simulation.ahead.bands import Band
from scheduling.simulation.ahead.correction import ForecastKind, JudgedForecast, correction_from
from workshop.demo.past.history import History, job_name

EVERY = timedelta(hours=4)
FUTURES = 8
AHEAD_S = 36 * 3600
"""Fewer than on a live cluster: some dozens of passes have to fit into the first minutes of a demo."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The cluster as it was, and who went on waiting there."""

    snapshot: Snapshot
    waiting: frozenset[str]

    @property
    def now(self) -> datetime:
        return self.snapshot.now


class ForecastMoments(History):
    """Keeps moments from ``since`` on in which somebody waits who was not seen waiting before."""

    def __init__(self, cluster: Cluster, since: datetime) -> None:
        super().__init__(cluster)
        self.moments: list[Moment] = []
        self._next = since
        self._seen: set[str] = set()

    def on_plan(self, now: datetime, snapshot: Snapshot | None, plan: Plan) -> None:
        super().on_plan(now, snapshot, plan)
        if snapshot is None or now < self._next:
            return
        starting = {d.workload for d in plan.decisions if d.action is Action.ADMIT}
        waiting = {w.name for w in snapshot.workloads if w.phase is Phase.PENDING} - starting
        if waiting - self._seen:
            self._next = now + EVERY
            self._seen |= waiting
            self.look(Moment(snapshot, frozenset(waiting)))

    def look(self, moment: Moment) -> None:
        self.moments.append(moment)


class Teller:
    """Tells of starts, moment by moment in order of time. ``row_of``: the row of an engine's name."""

    def __init__(self, row_of: Callable[[str], Workload], classes: Mapping[str, GpuClass]) -> None:
        self.outcomes: list[ForecastOutcome] = []
        self._row_of, self._classes = row_of, classes
        self._by_name: set[str] = set()

    def tell(self, moment: Moment, known: StartHistory) -> None:
        """``known``: what futures are drawn from at that moment."""
        now = moment.now
        ahead = look_ahead(moment.snapshot, known, futures=FUTURES, ahead_s=AHEAD_S)
        correction = correction_from((_came(one, now) for one in self.outcomes), now.timestamp())
        for name, raw in ahead.bands().items():
            work = self._row_of(name)
            kind = ForecastKind.of(work.requested_gpus / MILLI, first=name not in self._by_name)
            band = correction.correct(raw, kind)
            fresh = name in moment.waiting and not _started_by(work, now)
            if fresh and not why_not(work, band, raw, known.ended):
                self._note(name, work, raw, band, now)

    def _note(self, name: str, work: Workload, raw: Band, band: Band, now: datetime) -> None:
        classes = (self._classes[c] for c in work.gpu_classes if c in self._classes)
        outcome = ForecastOutcome(
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
        self.outcomes.append(outcome)


def tell_past(cluster: Cluster, moments: Iterable[Moment]) -> Iterator[int]:
    """Tell at each of ``moments`` what the ledger knew then; yields how many are done.

    The forecasts are written with the last one, together with what came of them.
    """
    rows = _rows(cluster)
    # Work that came later may have given the same name in another namespace.
    by_name = {row.name: row for row in reversed(rows)}
    classes = {c.name: c for c in cluster.gpu_classes.all()}
    teller = Teller(lambda name: by_name[job_name(name)], classes)
    for done, moment in enumerate(moments, 1):
        teller.tell(moment, known_from(rows, moment.now))
        yield done
    compare_with_simple(teller.outcomes, rows)
    _write(cluster, teller.outcomes)


@transaction.atomic
def _write(cluster: Cluster, forecasts: Sequence[ForecastOutcome]) -> None:
    """What the live cluster has told of the same work meanwhile was not the first."""
    works = {one.workload_id for one in forecasts}
    since = ForecastOutcome.objects.filter(workload__cluster=cluster, at_submission=True)
    again = [pk for pk, work in since.values_list("pk", "workload_id") if work in works]
    ForecastOutcome.objects.filter(pk__in=again).update(at_submission=False)
    ForecastOutcome.objects.bulk_create(forecasts, batch_size=200)
    outcomes.settle(cluster)


def _rows(cluster: Cluster) -> list[Workload]:
    """In order of submission."""
    found = Workload.objects.filter(cluster=cluster, gpus__gt=0)
    return list(found.select_related("priority_class", "queue").order_by("submitted_at", "id"))


def compare_with_simple(forecasts: Iterable[ForecastOutcome], rows: Sequence[Workload]) -> None:
    """Note with each what somebody would have said who only knew the waits up to then."""
    started = [(row.first_started_at, row) for row in rows if row.first_started_at is not None]
    started.sort(key=lambda pair: pair[0])
    moments = [at for at, _ in started]
    waits: dict[datetime, Mapping[outcomes.Size, float]] = {}
    for one in forecasts:
        if one.told_at not in waits:
            last = started[: bisect_right(moments, one.told_at)][-outcomes.LEARNED :]
            waits[one.told_at] = outcomes.naive_of(row for _, row in last)
        one.naive_s = waits[one.told_at].get(outcomes.size_of(one.workload))


def _came(one: ForecastOutcome, now: datetime) -> JudgedForecast:
    start = one.workload.first_started_at
    came = start is not None and start <= now
    return outcomes.outcome_of(
        one, max(one.told_at, start) if came and start else now, started=came
    )


def _started_by(work: Workload, at: datetime) -> bool:
    return work.first_started_at is not None and work.first_started_at <= at
