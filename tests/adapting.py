"""Adaptation over the example organisation's past, with replays that tell what a test wants them to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django.utils import timezone

from scheduling.models import AdaptingTrial, Cluster, Result, Study, StudyState, TrialState
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import doors
from scheduling.services.studies.adapting import steps, trials
from tests.factories import NOW
from tests.foresight import live_of
from tests.lab import with_work

AS_EVER = {"avg_wait_s": 3600.0, "unfair_pct": 2.0, "evictions": 10.0, "lost_gpu_hours": 5.0}
BETTER = {"avg_wait_s": 3000.0}
WORSE = {"avg_wait_s": 4200.0}


def turned_on(cluster: Cluster, monkeypatch) -> Cluster:
    """With the switch on, twelve days of work behind it and a week ahead of it."""
    with_work(cluster)
    later(cluster, days=-9)
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda study_id: None)
    trials.switch(cluster=cluster, is_on=True, author=None)
    return cluster


def later(cluster: Cluster, **spell: float) -> None:
    """The cluster's clock goes on."""
    cluster.clock_start += timedelta(**spell)
    cluster.save(update_fields=["clock_start"])


def answer(study: Study, told: Mapping[str, Mapping[str, float]]) -> None:
    """Every replay is over. Variants not in ``told`` are as ever; all lives of a seed share its chance."""
    for variant in study.variants.all():
        figures = AS_EVER | dict(told.get(variant.letter, {}))
        worst = figures.pop("worst_queue_s", 2 * figures["avg_wait_s"])
        for row in Result.objects.filter(variant=variant):
            chance = 1 + 0.01 * row.seed
            row.figures = {key: value * chance for key, value in figures.items()}
            row.queues = {"speech": {"jobs": 3, "avg_wait_s": worst * chance}}
            row.done_at = timezone.now()
            row.save()
    doors.end(study.pk, StudyState.DONE)


def asked(cluster: Cluster) -> AdaptingTrial:
    """A trial whose replays are waited for."""
    steps.look(cluster)
    trial = trials.open_trial(cluster)
    assert trial is not None
    return trial


def stepped(cluster: Cluster) -> AdaptingTrial:
    """Half-life of use on trial: the step up was better."""
    trial = asked(cluster)
    answer(trial.study, {"C": BETTER})
    steps.look(cluster)
    trial.refresh_from_db()
    return trial


def checked(cluster: Cluster, told: Mapping[str, float]) -> None:
    """A day later: the days since are replayed, and the value now is ``told``."""
    later(cluster, days=1, minutes=1)
    steps.look(cluster)
    trial = trials.open_trial(cluster)
    assert trial is not None
    answer(trial.study, {"A": told})
    steps.look(cluster)
    cluster.refresh_from_db()


def trial_row(cluster: Cluster, **more) -> AdaptingTrial:
    """One that is over, with evidence, without replays behind it."""
    figure = {"base": 3600.0, "mean": -126.0, "half": 60.0, "verdict": "better"}
    kept = {"base": 2.0, "mean": 0.1, "half": 0.4, "verdict": "noise"}
    names = ("unfair_pct", "worst_queue_s", "evictions", "lost_gpu_hours")
    judged = {"value": 691200, "figures": {"avg_wait_s": figure, **dict.fromkeys(names, kept)}}
    step = {"lives": 10, "days": 7.0, "jobs": 80, "fault": "", "values": [judged]}
    values = {
        "parameter": "half_life", "state": TrialState.KEPT, "value_from": 604800, "value_to": 691200,
        "asked_at": NOW - timedelta(days=9), "begun_at": NOW - timedelta(days=9),
        "ended_at": NOW - timedelta(days=2), "evidence": {"step": step},
        "sentence": "Half-life of use 7 → 8 d: wait −2.1 ± 1.0 min.",
    }  # fmt: skip
    return AdaptingTrial.objects.create(cluster=cluster, **{**values, **more})
