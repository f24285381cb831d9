"""Predict the rest of every run that has not ended, and judge what was said of those that have.

Runs that end first are short: were only what has ended looked at, a model would seem to tell too long. So a
run is counted from the moment on at which it should have ended by its P90, whether it has or not; and only
one of which something was told before it ran.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils.functional import cached_property

from scheduling.models import Cluster, Outcome, Prediction, Predictor, State, TaskPass, Workload
from scheduling.prediction.history import Estimate
from scheduling.prediction.learner import Models, RunTimeEstimate, say
from scheduling.prediction.paces import Pace
from scheduling.prediction.quantiles import rest_s, seconds
from scheduling.services.run_times.model_cache import models_of
from scheduling.services.run_times.rests import NEVER, held_back
from scheduling.services.run_times.runs import NEEDED, ran_s, run_of, work_of
from scheduling.services.run_times.serving import demote, serving
from scheduling.services.tables.bulk import write_columns
from scheduling.services.tables.passes import keep, last_of

MOST_LIVE = 20_000
"""Workloads that are predicted; those that wait longest, and what runs, first."""
SAME = 0.05
"""A prediction that moved by less is left as it is: the plan does not change with every breath of it."""
DRIFT_RUNS = 60
"""Latest runs that the serving model has to have told something of before it can lose its place ..."""
DRIFT_LEAST = 0.60
"""... by P10 to P90 holding fewer of them than this, where four fifths are promised."""
BATCH = 500
TASK = "predict run times"
LATE = timedelta(minutes=10)
"""An end may be heard of so long after it came."""
HEARERS = 500
"""Of waiting work whose users' runs have ended so many rows are predicted again before the hour is over."""


def predict(*, cluster: Cluster) -> int:
    """Write what is predicted of all that has not ended; how many rows changed. Safe twice.

    1. Judge those that ended since: what was said first stands beside how long they ran.
    2. Step back to history where the boosted model does not hold what it promises.
    3. Let the serving model hear of what ended since it was learned.
    4. Predict, on every class that each may run on: what is new, runs or has run, and what is of a user whose
       run has ended since the last pass; once an hour, and by a new version, all.
    """
    now = cluster.now()
    _judge(cluster)
    _watch(cluster, now)
    predictor = serving(cluster)
    if predictor is None:
        return 0
    with models_of(cluster, predictor, now) as models:
        mark = [predictor.pk, now.strftime("%F %H")]
        rows = _live(cluster, last_of(cluster, TASK), mark)
        said = {
            p.workload_id: p for p in Prediction.objects.filter(workload__in=[r.pk for r in rows])
        }
        waits = RecentWaits(cluster, now)
        made = [_prediction(models, predictor, row, said.get(row.pk), waits, now) for row in rows]
    changed = _save([one for one in made if one is not None])
    keep(cluster, TASK, mark, now.isoformat())
    return changed


def _live(cluster: Cluster, before: TaskPass, mark: list[Any]) -> list[Workload]:
    rows = Workload.objects.filter(cluster=cluster).exclude(state=State.FINISHED)
    if before.mark == mark:
        rows = rows.filter(_news(cluster, datetime.fromisoformat(before.found)))
    rows = rows.select_related("queue__parent", "gpu_class").only(*NEEDED)
    return list(rows.order_by("submitted_at", "pk")[:MOST_LIVE])


def _news(cluster: Cluster, before: datetime) -> Q:
    """Of which something else may be said than at ``before``."""
    ended = Workload.objects.filter(cluster=cluster, finished_at__gte=before - LATE)
    users = set(ended.order_by().values_list("user", flat=True))
    waiting = Workload.objects.filter(cluster=cluster, state=State.PENDING, user__in=users)
    hearers = waiting.order_by("submitted_at", "pk").values("pk")[:HEARERS]
    return Q(prediction=None) | ~Q(state=State.PENDING) | Q(pk__in=hearers)


@dataclass(frozen=True, slots=True)
class _Forecast:
    """Quantiles of the rest on one class, and what they were learned from."""

    rest: tuple[float, float, float]
    said: RunTimeEstimate


def _prediction(
    models: Models,
    predictor: Predictor,
    row: Workload,
    before: Prediction | None,
    waits: RecentWaits,
    now: datetime,
) -> Prediction | None:
    """The row to write; None where it stands already."""
    work = work_of(row)
    noted = before.evidence.get("as_submitted") if before else None
    submitted = _numbers(noted) if noted else models.submissions.note(work)
    gone_s = ran_s(row, now)
    forecast = _forecast(models, row, "", submitted, gone_s, now)
    compared = _compared(models, row)
    by_class = _by_class(models, row, compared, submitted, gone_s, waits, now)
    paces = {name: round(pace.ratio, 3) for name, pace in compared.items()}
    if (
        before is not None
        and before.predictor_id == predictor.pk
        and _is_same(before, forecast.rest, row.state, now)
        and _are_same(before.by_class, by_class)
        and before.paces.keys() == paces.keys()
    ):
        return None
    made = before or Prediction(workload=row, told_at=now, told_by=predictor)
    if before is None:
        made.told_p10_s, made.told_p50_s, made.told_p90_s = forecast.rest
    made.predictor, made.at = predictor, now
    made.p10_s, made.p50_s, made.p90_s = forecast.rest
    made.evidence = _evidence(forecast.said.estimate, gone_s) | {
        "as_submitted": _plain(submitted),
        "by": forecast.said.by,
    }
    made.by_class, made.paces = by_class, paces
    return made


def _forecast(
    models: Models,
    row: Workload,
    gpu_class: str,
    submitted: Sequence[float],
    gone_s: float,
    now: datetime,
) -> _Forecast:
    work = work_of(row, gpu_class)
    said = say(models, work, now.timestamp(), tuple(submitted))
    return _Forecast(rest_s(said.quantiles, gone_s, work.limit_s), said)


def _by_class(
    models: Models,
    row: Workload,
    compared: Mapping[str, Pace],
    submitted: Sequence[float],
    gone_s: float,
    waits: RecentWaits,
    now: datetime,
) -> dict[str, Any]:
    """For each class that it may run on, while it waits to start."""
    if row.state in (State.ADMITTED, State.RUNNING, State.EVICTED):
        return {}
    found: dict[str, Any] = {}
    for place, (name, pace) in enumerate(compared.items()):
        p10, p50, p90 = _forecast(models, row, name, submitted, gone_s, now).rest
        found[name] = {
            "place": place, "p10_s": p10, "p50_s": p50, "p90_s": p90, "ratio": round(pace.ratio, 3),
            "runs": pace.runs, "groups": pace.groups, "own_runs": pace.own,
            "wait_s": waits.typical_s(row, name),
        }  # fmt: skip
    return found


def _compared(models: Models, row: Workload) -> dict[str, Pace]:
    """Each class that it may run on against the first, in its author's order; empty unless it may run on
    several, and all paces are known of it."""
    if len(row.gpu_classes) < 2:
        return {}
    work, first = work_of(row), row.gpu_classes[0]
    found = {name: models.history.paces.between(work, first, name) for name in row.gpu_classes}
    return {} if None in found.values() else {n: pace for n, pace in found.items() if pace}


def _evidence(estimate: Estimate, gone_s: float) -> dict[str, Any]:
    values = list(estimate.values)
    return {
        "group": estimate.group,
        "runs": len(values),
        "shortest_s": round(seconds(min(values))) if values else None,
        "longest_s": round(seconds(max(values))) if values else None,
        "ran_s": round(gone_s),
    }


def _is_same(before: Prediction, rest: Sequence[float], state: str, now: datetime) -> bool:
    """Whether what was said then, with the time that has passed for one that runs, still says it."""
    passed_s = (now - before.at).total_seconds() if state == State.RUNNING else 0.0
    old = (before.p10_s, before.p50_s, before.p90_s)
    return all(
        abs(new + passed_s - was) <= SAME * max(was, 60.0)
        for new, was in zip(rest, old, strict=True)
    )


def _are_same(before: Mapping[str, Any], by_class: Mapping[str, Any]) -> bool:
    if held_back(before, NEVER).keys() != held_back(by_class, NEVER).keys():
        return False
    return before.keys() == by_class.keys() and all(
        abs(one["p50_s"] - before[name]["p50_s"]) <= SAME * max(before[name]["p50_s"], 60.0)
        for name, one in by_class.items()
    )


def _plain(values: Iterable[float]) -> list[float | None]:
    return [None if math.isnan(value) else round(value, 4) for value in values]


def _numbers(values: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(math.nan if value is None else value for value in values)


def _save(made: list[Prediction]) -> int:
    new = [one for one in made if one.pk is None]
    old = [one for one in made if one.pk is not None]
    columns = ["predictor", "at", "p10_s", "p50_s", "p90_s", "by_class", "paces", "evidence"]
    with transaction.atomic():
        # Another process may have told them first: what was said first stands.
        Prediction.objects.bulk_create(new, batch_size=BATCH, ignore_conflicts=True)
        write_columns(old, columns)
    return len(made)


def _judge(cluster: Cluster) -> None:
    over = Prediction.objects.filter(
        workload__cluster=cluster, workload__state=State.FINISHED, ran_s__isnull=True
    )
    over = over.select_related("workload__queue__parent", "workload__gpu_class")[:MOST_LIVE]
    judged = []
    for said in over:
        run = run_of(said.workload)
        said.ran_s = run.ran_s if run else 0.0
        said.cut_short = said.workload.outcome != Outcome.SUCCEEDED
        judged.append(said)
    if judged:
        with transaction.atomic():
            write_columns(judged, ["ran_s", "cut_short"])


def _watch(cluster: Cluster, now: datetime) -> None:
    """Step back where the boosted model that serves has lost its hold."""
    predictor = serving(cluster)
    if predictor is None or predictor.kind != "boosted":
        return
    latest = hits(predictor.first_predictions.all(), now, DRIFT_RUNS)
    within = sum(latest)
    if len(latest) == DRIFT_RUNS and within < DRIFT_LEAST * DRIFT_RUNS:
        demote(cluster=cluster, why=f"P10 to P90 held {within} of the last {DRIFT_RUNS} runs.")


WINDOW = timedelta(hours=24)
MOST_READ = 5000
MOST, LEAST = 20, 3
"""Starts that one figure is of; fewer than the least say nothing."""


class RecentWaits:
    """Of one cluster, over the last ``WINDOW`` before ``now``. One query, once it is asked."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self._cluster, self._now = cluster, now

    @cached_property
    def _starts(self) -> dict[tuple[int | None, str], list[tuple[int, float]]]:
        found: dict[tuple[int | None, str], list[tuple[int, float]]] = defaultdict(list)
        rows = Workload.objects.filter(
            cluster=self._cluster, first_started_at__gt=self._now - WINDOW
        )
        rows = rows.exclude(gpu_class=None).order_by("-first_started_at")[:MOST_READ]
        columns = rows.values_list(
            "queue_id", "gpu_class__name", "gpus", "min_members", "submitted_at", "first_started_at"
        )
        for queue, name, gpus, members, submitted, began in columns:
            if began is not None:
                waited_s = (began - submitted).total_seconds()
                found[queue, name].append((gpus * members, waited_s))
        return found

    def typical_s(self, work: Workload, gpu_class: str) -> float | None:
        """The median wait, in seconds, of the latest starts in its queue that asked for at least half as
        many GPUs; None where there were too few."""
        size = work.gpus * work.min_members
        began = self._starts.get((work.queue_id, gpu_class), [])
        waits = [waited_s for gpus, waited_s in began if 2 * gpus >= size][:MOST]
        return median(waits) if len(waits) >= LEAST else None


LOOKED_AT = 10
"""So many times what is wanted are read: many have not come due."""


def hits(predictions: QuerySet[Prediction], now: datetime, most: int) -> list[bool]:
    """Of the latest ``most`` among ``told`` that have come due: whether P10 to P90 held. What was cut short
    says nothing."""
    rows = predictions.filter(told_at__lte=F("workload__first_started_at"), cut_short=False)
    columns = rows.order_by("-told_at", "-pk").values_list(
        "workload__first_started_at", "told_p10_s", "told_p90_s", "ran_s"
    )
    found = [
        ran_s is not None and p10_s <= ran_s <= p90_s
        for started, p10_s, p90_s, ran_s in columns[: LOOKED_AT * most]
        if started is not None and started + timedelta(seconds=p90_s) <= now
    ]
    return found[:most]
