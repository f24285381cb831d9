"""How long work would run that nobody has submitted yet: asked in a row, answered by whoever holds the model.

The process that asks reads no model. A question is the same as long as nothing of the work and no version of
the model changes, so that whoever types the same twice has the answer at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from hashlib import sha256
from json import dumps
from typing import Any

from celery import current_app
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduling.models import Cluster, RunTimeQuestion, Workload
from scheduling.prediction.learner import Models, say
from scheduling.prediction.quantiles import rest_s
from scheduling.prediction.runs import Work
from scheduling.services.run_times.loaded import models_of
from scheduling.services.run_times.runs import work_of
from scheduling.services.run_times.serving import serving

log = logging.getLogger(__name__)

TASK = "scheduling.tasks.answer_run_time"
EXPIRES_S = 10.0
"""Who asked has gone on typing by then, or asks again."""
FRESH = timedelta(minutes=5)
"""Real time: the model hears of what ends meanwhile."""
KEPT = timedelta(hours=1)
LOOK_EVERY_S = 0.03
COLUMNS = (
    "name", "user", "image", "type", "gpus", "memory_mib", "min_members", "run_time_limit_s",
)  # fmt: skip
"""Of a workload, besides its queue and the classes that it may use."""


def ask(*, cluster: Cluster, work: Workload, gpu_classes: Sequence[str]) -> RunTimeQuestion | None:
    """The question how long ``work`` would run on each of ``gpu_classes``, with its answer if it was asked
    lately; None before anything was learned. ``work`` need not be saved."""
    predictor = serving(cluster)
    if predictor is None:
        return None
    document = _document(work, gpu_classes)
    text = dumps([predictor.pk, document], sort_keys=True)
    row, is_new = RunTimeQuestion.objects.get_or_create(
        cluster=cluster,
        digest=sha256(text.encode()).hexdigest(),
        defaults={"asked": document, "asked_at": timezone.now()},
    )
    if is_new or _is_due(row):
        RunTimeQuestion.objects.filter(pk=row.pk).update(asked_at=timezone.now())
        transaction.on_commit(lambda: _send(row.pk))
    return row


def _send(question_id: int) -> None:
    try:
        current_app.send_task(TASK, args=[question_id], expires=EXPIRES_S, retry=False)
    except OperationalError as error:
        # Nobody waits for it: the page says that the answer is still to come.
        log.warning("run time of question %s: the broker does not answer: %s", question_id, error)


def answer_of(question: RunTimeQuestion, *, wait_s: float = 0.0) -> dict[str, Expected] | None:
    """By class; None where it is not known after ``wait_s`` seconds either."""
    until = time.monotonic() + wait_s
    while question.answer is None and time.monotonic() < until:
        time.sleep(LOOK_EVERY_S)
        question.refresh_from_db(fields=["answer"])
    if question.answer is None:
        return None
    return {name: _expected(one) for name, one in question.answer.items()}


def answer(question_id: int) -> None:
    """Work the question out and keep the answer; one that is gone is left alone. Safe twice."""
    row = RunTimeQuestion.objects.select_related("cluster").filter(pk=question_id).first()
    if row is None:
        return
    said = expected_on(cluster=row.cluster, work=_work(row), gpu_classes=row.asked["gpu_classes"])
    row.answer = {name: asdict(one) for name, one in said.items()}
    row.answered_at = timezone.now()
    row.save(update_fields=["answer", "answered_at"])
    RunTimeQuestion.objects.filter(
        cluster=row.cluster, asked_at__lt=row.answered_at - KEPT
    ).delete()


def _is_due(row: RunTimeQuestion) -> bool:
    """Not answered in its time, or so long ago that it may have become another."""
    since = timezone.now() - row.asked_at
    if row.answer is None:
        return since.total_seconds() > EXPIRES_S
    return since > FRESH


def _document(work: Workload, gpu_classes: Sequence[str]) -> dict[str, Any]:
    return {
        **{name: getattr(work, name) for name in COLUMNS},
        "queue": work.queue_id,
        "gpu_classes": list(gpu_classes),
        "wished": list(work.gpu_classes),
    }


def _work(row: RunTimeQuestion) -> Workload:
    question = row.asked
    return Workload(
        cluster=row.cluster,
        queue_id=question["queue"],
        gpu_classes=question["wished"],
        submitted_at=row.cluster.now(),
        **{name: question[name] for name in COLUMNS},
    )


def _expected(one: dict[str, Any]) -> Expected:
    known = {field.name: one[field.name] for field in fields(Expected)}
    pace = known.pop("pace")
    return Expected(**known, pace=Compared(**pace) if pace else None)


@dataclass(frozen=True, slots=True)
class Compared:
    """So many times as fast as on ``against``, as ``runs`` of ``groups`` names show that have run on both;
    ``own`` of them are of its own name and image."""

    against: str
    ratio: float
    runs: int
    groups: int
    own: int


@dataclass(frozen=True, slots=True)
class Expected:
    """Quantiles of a run in seconds, and what they were learned from: ``runs`` of ``group`` (as
    ``prediction.history`` names it), of them ``here`` on the class in question. ``paced``: it is known how
    the class compares with all that those ran on. ``pace``: how it compares with the first of the classes
    that were asked about; None where nobody knows, or of the first itself."""

    p10_s: float
    p50_s: float
    p90_s: float
    group: str
    runs: int
    here: int
    paced: bool
    pace: Compared | None = None
    free_p50_s: float = 0.0
    free_p90_s: float = 0.0
    """As it would run if no limit ended it."""

    @property
    def compares(self) -> bool:
        """Whether it may be held against what is expected on another class."""
        return bool(self.runs) and self.paced


def expected_on(
    *, cluster: Cluster, work: Workload, gpu_classes: Sequence[str]
) -> dict[str, Expected]:
    """By class; empty before anything was learned. ``work`` need not be saved."""
    predictor = serving(cluster)
    if predictor is None:
        return {}
    now = cluster.now()
    with models_of(cluster, predictor, now) as models:
        return {
            name: _on(models, work, name, first_of(work, gpu_classes), now.timestamp())
            for name in gpu_classes
        }


def first_of(work: Workload, gpu_classes: Sequence[str]) -> str:
    """The class that others are held against: the first that it wishes, else that is asked about."""
    return next(iter([*work.gpu_classes, *gpu_classes]), "")


def _on(models: Models, row: Workload, gpu_class: str, first: str, now: float) -> Expected:
    work = work_of(row, gpu_class)
    said = say(models, work, now, models.submissions.seen(work))
    p10, p50, p90 = rest_s(said.quantiles, 0.0, work.limit_s)
    _, free_p50, free_p90 = rest_s(said.quantiles)
    ran_on = said.estimate.classes
    paces = models.history.paces
    return Expected(
        p10_s=p10,
        p50_s=p50,
        p90_s=p90,
        group=said.estimate.group,
        runs=len(ran_on),
        here=ran_on.count(gpu_class),
        paced=all(name and paces.between(work, name, gpu_class) for name in set(ran_on)),
        pace=_compared(models, work, first, gpu_class),
        free_p50_s=free_p50,
        free_p90_s=free_p90,
    )


def _compared(models: Models, work: Work, first: str, gpu_class: str) -> Compared | None:
    if first == gpu_class:
        return None
    pace = models.history.paces.between(work, first, gpu_class)
    if pace is None:
        return None
    return Compared(first, round(pace.ratio, 3), pace.runs, pace.groups, pace.own)
