"""Learn run times from the ledger: one model a cluster, a new version whenever enough has ended since.

The model is made anew from the window each time, by one pass in the order in which things came to pass. So
nothing is lost by a kill, and learning twice gives the same.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from scheduling.models import Cluster, Predictor, PredictorKind, State, Workload
from scheduling.prediction import storage
from scheduling.prediction.baselines import Baselines
from scheduling.prediction.history import GROUPS
from scheduling.prediction.learner import Learner
from scheduling.prediction.weighing import weights

from .runs import NEEDED, run_of, work_of
from .serving import promote

WINDOW = timedelta(days=90)
MOST_RUNS = 20_000
"""The latest: bounds CPU (about a minute) and memory (``bench foreseen``)."""
LEAST_RUNS = 20
DUE = 0.05
"""A new version is due when so many times the runs of the last one have ended since it."""
FITTED_AGAIN = 1.5
KEPT = 40
"""Versions."""


def learn(*, cluster: Cluster) -> Predictor | None:
    """Learn from what had ended by now, if enough is new; the version that was made.

    1. Replay the window: predict, then learn, workload by workload.
    2. Keep the models with how they did.
    3. Let it serve.
    """
    now, latest = cluster.now(), _latest(cluster)
    if not _is_due(cluster, latest, now):
        return None
    began_s = time.thread_time()
    begin = _window_from(cluster, now)
    learner, simple = replayed(_rows(cluster, begin, now), now)
    made = _predictor(cluster, learner, simple, begin, now)
    made.took_s = round(time.thread_time() - began_s, 2)
    return _keep(cluster, made, latest)


def is_due(*, cluster: Cluster) -> bool:
    """Whether enough has ended since the last version."""
    return _is_due(cluster, _latest(cluster), cluster.now())


def _latest(cluster: Cluster) -> Predictor | None:
    return Predictor.objects.filter(cluster=cluster).order_by("-version").defer("state").first()


def ended(cluster: Cluster) -> QuerySet[Workload]:
    """Those of ``cluster`` that ran and have finished."""
    rows = Workload.objects.filter(cluster=cluster, state=State.FINISHED, started_at__isnull=False)
    return rows.select_related("queue__parent", "gpu_class").only(*NEEDED)


def replayed(rows: list[Workload], now: datetime) -> tuple[Learner, Baselines]:
    """What is learned of ``rows`` by ``now``, each submitted and ended at its own time; and what predictors
    of one line would have said of them."""
    learner, simple = Learner(again=FITTED_AGAIN), Baselines()
    events = [(row.submitted_at, 0, row.pk, row) for row in rows]
    events += [
        (row.finished_at, 1, row.pk, row)
        for row in rows
        if row.finished_at is not None and row.finished_at <= now
    ]
    for _, is_end, pk, row in sorted(events, key=lambda event: event[:3]):
        run = run_of(row)
        if not is_end:
            learner.submit(pk, work_of(row))
            if run is not None and not run.censored:
                simple.judge(run.work, run.ran_s)
        elif run is not None:
            learner.end(pk, run)
            simple.learn(run)
    return learner, simple


def _is_due(cluster: Cluster, latest: Predictor | None, now: datetime) -> bool:
    new = ended(cluster).filter(finished_at__lte=now)
    if latest is not None:
        new = new.filter(finished_at__gt=latest.window_to)
    least = max(LEAST_RUNS, round(DUE * latest.runs)) if latest else LEAST_RUNS
    return new.count() >= least


def _window_from(cluster: Cluster, now: datetime) -> datetime:
    latest = ended(cluster).filter(finished_at__gt=now - WINDOW, finished_at__lte=now)
    ends = latest.order_by("-finished_at").values_list("finished_at", flat=True)
    first = ends[MOST_RUNS - 1 : MOST_RUNS].first() if ends.count() > MOST_RUNS else None
    return first or now - WINDOW


def _rows(cluster: Cluster, begin: datetime, now: datetime) -> list[Workload]:
    return list(ended(cluster).filter(finished_at__gt=begin, finished_at__lte=now).order_by("pk"))


def _predictor(
    cluster: Cluster, learner: Learner, simple: Baselines, begin: datetime, now: datetime
) -> Predictor:
    figures = {name: score.figures() for name, score in learner.scores.items()}
    own = figures[learner.models.serving] or figures["told"]
    return Predictor(
        cluster=cluster,
        kind=PredictorKind(learner.models.serving),
        window_from=begin,
        window_to=now,
        runs=learner.ended,
        censored=learner.censored,
        state=storage.dump(learner.models),
        calibration={
            **own,
            "simple": {name: one for name, one in figures.items() if one},
            "baselines": simple.figures(),
            "by_class": {name: score.figures() for name, score in learner.by_class.items() if name},
        },
        paces=[
            {
                "gpu_class": quick,
                "against": slow,
                "ratio": round(pace.ratio, 3),
                "groups": pace.groups,
                "runs": pace.runs,
            }
            for quick, slow, pace in learner.models.history.paces.pairs()
        ],
        weighs=_weighs(learner),
        why=_why(learner),
    )


def _weighs(learner: Learner) -> dict[str, Any]:
    runs, found = weights(learner)
    groups = (
        (group, learner.by_group[group].figures())
        for group in (*GROUPS, "")
        if group in learner.by_group
    )
    return {
        "runs": runs,
        "known": [asdict(one) for one in found],
        "groups": [
            {"name": group, "runs": of["runs"], "error": of["median_abs_log2_error"]}
            for group, of in groups
        ],
    }


def _why(learner: Learner) -> str:
    if learner.models.serving == "boosted":
        return "It was better than history on later runs."
    if learner.models.forest is None:
        return "Too few runs have ended for a boosted model."
    return "History was better than the boosted model on later runs."


@transaction.atomic
def _keep(cluster: Cluster, made: Predictor, latest: Predictor | None) -> Predictor | None:
    """None where another process has learned meanwhile."""
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    versions = Predictor.objects.filter(cluster=cluster)
    newest = versions.order_by("-version").values_list("version", flat=True).first() or 0
    if newest != (latest.version if latest else 0):
        return None
    made.version = newest + 1
    made.save()
    promote(predictor=made, why=made.why)
    versions.filter(version__lte=made.version - KEPT).delete()
    return made
