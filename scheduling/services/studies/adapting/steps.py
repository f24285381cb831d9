"""The look at a cluster: what replays have shown is acted on, and once a day something new is asked of them.

1. ``look`` goes one step on. Two at once do nothing twice: a cluster has one open trial, and each change of
   its state is a conditional update.
2. A trial whose replays are over is decided: a step is taken or not, kept, or taken back.
3. A step on trial has the days since replayed with both values, once a day: worse beyond noise in any figure,
   and it is taken back at once; after a week it is kept if waits were better beyond noise, else taken back.
4. With nothing on trial, and a day after the last look, the next parameter in turn is replayed over the last
   week with one step either way.

The replays are studies, which are lived on whatever dies here.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction

from scheduling.models import (
    Adaptation,
    AdaptingTrial,
    Cluster,
    ClusterMode,
    Study,
    StudyKind,
    TrialState,
)
from scheduling.services.errors import ServiceError
from scheduling.services.studies import doors
from scheduling.services.studies.adapting import trials, words
from scheduling.services.studies.adapting.judging import FinishedLives, Json, ended
from scheduling.services.studies.adapting.parameters import BY_NAME, Parameter, Value, changes
from scheduling.services.studies.experiments.asking import Question, ask
from scheduling.services.studies.experiments.periods import known_since

log = logging.getLogger(__name__)

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
WARM_UP = timedelta(days=7)
"""At most; less where less is known."""
LEAST_WARM_UP = timedelta(days=1)
LONGEST = timedelta(days=14)
"""A step that nothing could be told of for so long is taken back."""
KEPT = timedelta(days=400)
"""Trials; their replays go with the experiments of the lab."""


def is_due(cluster: Cluster) -> bool:
    """Whether a look finds something to do. Cheap, where a look may compute for seconds."""
    if not trials.adaptation_of(cluster).is_on:
        return False
    trial = trials.open_trial(cluster)
    if trial is None:
        return _is_due(cluster)
    if trials.is_edited(trial):
        return True
    if trial.study is not None:
        return not trial.study.is_open
    return trial.checked_at is None or cluster.now() - trial.checked_at >= DAY


def look(cluster: Cluster) -> None:
    """Go one step on, if adaptation is on."""
    if cluster.mode == ClusterMode.PAUSED or not trials.adaptation_of(cluster).is_on:
        return
    try:
        _go_on(cluster)
    except IntegrityError as error:
        # Another looks at the same moment, and has begun the one trial that a cluster may have.
        log.info("cluster %s, adaptation: %s", cluster.name, error)


def _go_on(cluster: Cluster) -> None:
    trial = trials.open_trial(cluster)
    if trial is None:
        if _is_due(cluster):
            _propose(cluster)
    elif trials.stop_if_edited(trial):
        log.info("cluster %s: the trial of %s ends", cluster.name, trial.parameter)
    elif trial.state == TrialState.JUDGING:
        _decide_step(trial)
    elif trial.study is not None:
        _decide_check(trial)
    elif trial.begun_at is not None and cluster.now() - trial.begun_at >= LONGEST:
        trials.take_back(trial, "no week since could be replayed")
    elif trial.checked_at is not None and cluster.now() - trial.checked_at >= DAY:
        _check(trial)


def due_at(cluster: Cluster, row: Adaptation) -> datetime | None:
    """When the next parameter is chosen, at the earliest; None where adaptation is off."""
    if not row.is_on:
        return None
    return row.looked_at + DAY if row.looked_at else cluster.now()


def _is_due(cluster: Cluster) -> bool:
    at = due_at(cluster, trials.adaptation_of(cluster))
    return at is not None and at <= cluster.now()


def _propose(cluster: Cluster) -> None:
    parameter = trials.next_parameter(cluster)
    if parameter is None:
        _note(cluster, "Every parameter is pinned.")
        return
    value = parameter.value_of(cluster)
    now = cluster.now()
    try:
        with transaction.atomic():
            made = _ask(cluster, parameter, now - WEEK, now, parameter.beside(value))
            AdaptingTrial.objects.create(
                cluster=cluster, parameter=parameter.name, value_from=value, asked_at=now,
                study=made,
            )  # fmt: skip
            _note(cluster, "")
            doors.start(made)
    except ServiceError as error:
        _note(cluster, str(error))


def _note(cluster: Cluster, why: str) -> None:
    """It was looked at, and the next look is tomorrow."""
    Adaptation.objects.filter(cluster=cluster).update(looked_at=cluster.now(), why=why[:300])


def _ask(
    cluster: Cluster,
    parameter: Parameter,
    begin: datetime,
    end: datetime,
    values: tuple[Value, ...],
) -> Study:
    """Replays of what came in [begin, end), with ``values`` beside the one in force. Raises ServiceError."""
    return ask(
        cluster=cluster,
        author="",
        kind=StudyKind.ADAPTING,
        question=Question(
            name=f"{parameter.title}, adapting",
            begin=begin,
            end=end,
            warm_up=_warm_up(cluster, begin),
            replays=settings.WEIR_ADAPTING_REPLAYS,
            of_today=True,
            variants=[
                {"name": parameter.in_words(value), "changes": changes(parameter, value)}
                for value in values
            ],
        ),
    )


def _warm_up(cluster: Cluster, begin: datetime) -> timedelta:
    """As much as is known before ``begin``, within bounds; the lab refuses what the ledger has not."""
    first = known_since(cluster)
    known = begin - first if first else timedelta(0)
    return min(WARM_UP, max(LEAST_WARM_UP, known))


def _decide_step(trial: AdaptingTrial) -> None:
    """Take the better of the values beside, if one is better beyond noise; else leave it and say so."""
    found = ended(trial.study, base="A", values=_values(trial.study))
    if found is None:
        return
    trial.evidence = {"step": _evidence(trial, found)}
    best = words.chosen(found.judged)
    if best is None:
        trials.leave(trial)
    else:
        # Where a person has set it meanwhile, the next look ends the trial.
        trials.step(trial, best.value)


def _values(study: Study | None) -> dict[str, Value]:
    """By letter: what the variants beside A have in place of the value in force."""
    variants = study.variants.exclude(letter="A") if study else ()
    return {one.letter: one.changes[0]["value"] for one in variants}


def _check(trial: AdaptingTrial) -> None:
    """Replay the days since the step with both values; A is as in force."""
    parameter, cluster = BY_NAME[trial.parameter], trial.cluster
    assert trial.begun_at is not None  # noqa: S101 - it is on trial
    try:
        with transaction.atomic():
            made = _ask(cluster, parameter, trial.begun_at, cluster.now(), (trial.value_from,))
            mine = AdaptingTrial.objects.filter(pk=trial.pk, state=TrialState.TRYING)
            if not mine.filter(study=None).update(study=made):
                raise ServiceError("gone", "It is not on trial any more.")
            doors.start(made)
    except ServiceError as error:
        _checked(trial, {"at": cluster.now().isoformat(), "fault": str(error)})


def _decide_check(trial: AdaptingTrial) -> None:
    found = ended(trial.study, base="B", values={"A": trials.value_of(trial)})
    if found is None or trial.study is None or trial.begun_at is None:
        return
    is_over = trial.study.period[1] - trial.begun_at >= WEEK
    check = _evidence(trial, found)
    trial.evidence = {**trial.evidence, "checks": [*trial.evidence.get("checks", ()), check]}
    if found.fault:
        _checked(trial, check)
    elif found.judged[0].is_worse:
        trials.take_back(trial, "the days since went worse than with the value before")
    elif not is_over:
        _checked(trial, check)
    elif found.judged[0].is_better:
        trials.keep(trial)
    else:
        trials.take_back(trial, "the week since showed nothing better than noise")


def _evidence(trial: AdaptingTrial, found: FinishedLives) -> Json:
    made = trial.study
    if made is None:
        return {"at": trial.cluster.now().isoformat(), "fault": found.fault}
    begin, end = made.period
    return {
        "at": trial.cluster.now().isoformat(),
        "begin": begin.isoformat(),
        "end": end.isoformat(),
        "days": round((end - begin) / DAY, 1),
        "jobs": made.basis["jobs"],
        "lives": found.lives,
        "experiment": made.pk,
        "fault": found.fault,
        "values": [one.document() for one in found.judged],
    }


def _checked(trial: AdaptingTrial, check: Json) -> None:
    """It stays on trial; the next check is a day after this one's days."""
    checks = trial.evidence.get("checks", [])
    if not checks or checks[-1] is not check:
        checks = [*checks, check]
    mine = AdaptingTrial.objects.filter(pk=trial.pk, state=TrialState.TRYING)
    mine.update(
        study=None, checked_at=trial.cluster.now(), evidence={**trial.evidence, "checks": checks}
    )  # fmt: skip


def forget(cluster: Cluster) -> int:
    """Drop trials that ended long ago; how many."""
    old = AdaptingTrial.objects.filter(cluster=cluster, ended_at__lt=cluster.now() - KEPT)
    return old.delete()[0]
