"""How long work would run that nobody has submitted yet: asked in a row, answered by whoever holds the model.

The process that asks reads no model. A question is the same as long as nothing of the work and no version of
the model changes, so that who types the same twice has the answer at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import timedelta
from hashlib import sha256
from json import dumps
from typing import Any

from celery import current_app
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduling.models import Cluster, RunTimeQuestion, Workload

from .expecting import Compared, Expected, expected_on
from .serving import serving

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
    asked = row.asked
    return Workload(
        cluster=row.cluster,
        queue_id=asked["queue"],
        gpu_classes=asked["wished"],
        submitted_at=row.cluster.now(),
        **{name: asked[name] for name in COLUMNS},
    )


def _expected(one: dict[str, Any]) -> Expected:
    known = {field.name: one[field.name] for field in fields(Expected)}
    pace = known.pop("pace")
    return Expected(**known, pace=Compared(**pace) if pace else None)
