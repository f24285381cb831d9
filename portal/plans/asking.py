"""A page asks for a plan and shows what is kept of it; a worker plans, and no request waits for that.

An answer serves while the cluster stands as it was planned on, and for ``FRESH`` whatever happens: it says
its time. Where an older one is, it is shown until the new one has come.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from json import dumps
from typing import Any

from celery import current_app
from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from kombu.exceptions import OperationalError

from portal.accounts.models import User
from portal.plans import starts
from portal.plans.kinds import IN_PLACE, KINDS, RUN_TIME, SOONER, TOGETHER
from portal.plans.models import PlanQuestion
from portal.plans.starts import CHANGED, NOTHING_ASKED, PredictedStarts, change_question
from portal.teams.changing import Comparison
from scheduling.models import Cluster, Workload
from scheduling.services import run_times
from scheduling.services.run_times import ExpectedRunTime
from scheduling.services.workloads.change import WorkloadChange

log = logging.getLogger(__name__)

Json = dict[str, Any]
TASK = "portal.plans.tasks.answer"
FRESH = timedelta(minutes=1)
SHOWN = timedelta(minutes=15)
"""So old an answer may be while a new one is planned."""
EXPIRES_S = 20
"""A question that no worker took by then is sent again when somebody looks."""
KEPT = timedelta(hours=2)
MOST_TOGETHER = 24
"""Questions of one task: so many are planned in some seconds, and another worker may take the others."""
SHORT = (SOONER, RUN_TIME)
IS_OPEN = Q(planned_at=None) | Q(planned_at__lt=F("asked_at"))
LOOKS_EVERY_S = 0.05
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Of what nobody waits for: it is planned by whoever acts on it."""


@dataclass(frozen=True, slots=True)
class PlanState:
    """``answer`` is None where there is none to show yet; while a worker plans, it ``is_open``."""

    answer: Json | None
    is_open: bool
    asked_at: datetime

    @property
    def is_late(self) -> bool:
        """Whether no worker took the question in its time."""
        return self.is_open and timezone.now() - self.asked_at > timedelta(seconds=EXPIRES_S / 2)


def context_of(plan: PlanState | None) -> dict[str, bool]:
    """How it stands, for a template."""
    return {
        "is_open": plan is not None and plan.is_open,
        "is_late": plan is not None and plan.is_late,
    }


def ask(cluster: Cluster, kind: str, question: Json, *, anew: bool = False) -> PlanState:
    """What is kept; asked for where that is too old, or ``anew``. Plans nothing itself."""
    now = timezone.now()
    row = _row(cluster, kind, question)
    if (anew or not _serves(row, cluster.revision, now)) and not _is_on_its_way(row, now):
        PlanQuestion.objects.filter(pk=row.pk).update(asked_at=now)
        _ask(row.pk)
        row.refresh_from_db()
    return _state_of(row, now)


def look(cluster: Cluster, kind: str, question: Json) -> PlanState | None:
    """What is kept or on its way; asks for nothing. None where nobody asked."""
    row = PlanQuestion.objects.filter(cluster=cluster, digest=digest_of(kind, question)).first()
    if row is None or row.question != question:
        return None
    return _state_of(row, timezone.now())


def plan_now(cluster: Cluster, kind: str, question: Json) -> Json:
    """The answer for whoever acts on it: the kept one while it serves, else planned now, and kept."""
    row = _row(cluster, kind, question)
    if row.answer is None or not _serves(row, cluster.revision, timezone.now()):
        row.answer = _plan(row)
    return dict(row.answer)


def answer(asked_id: int) -> None:
    """Plan it and keep that, unless somebody did; what is asked about may be gone. Safe twice: the later
    answer stays."""
    row = PlanQuestion.objects.select_related("cluster").filter(pk=asked_id).first()
    if row is None or (row.planned_at and row.planned_at >= row.asked_at):
        return
    if row.kind in TOGETHER:
        _plan_together(row)
    else:
        try:
            _plan(row)
        except ObjectDoesNotExist:
            row.delete()
    _forget(timezone.now() - KEPT)


def answer_short(cluster: Cluster) -> None:
    """Plan what somebody waits for that takes no seconds: a worker has one thread, and a crowd's forecasts of
    starts fill it for minutes. Their own tasks then find them planned."""
    since = timezone.now() - timedelta(seconds=EXPIRES_S)
    rows = PlanQuestion.objects.filter(IS_OPEN, cluster=cluster, kind__in=SHORT, asked_at__gt=since)
    for asked_id in rows.order_by("asked_at").values_list("pk", flat=True):
        answer(asked_id)


def _forget(before: datetime) -> None:
    """What nobody asked since; not a row that is made at this moment, whose question is on its way."""
    is_old = Q(asked_at__gt=NEVER, asked_at__lt=before) | Q(asked_at=NEVER, planned_at__lt=before)
    PlanQuestion.objects.filter(is_old).delete()


def _plan(row: PlanQuestion) -> Json:
    began, revision = timezone.now(), row.cluster.revision
    made = KINDS[row.kind](row.cluster, row.question)
    _keep(row, made, began, revision)
    return made


def _plan_together(row: PlanQuestion) -> None:
    """It, and what others wait for of its kind: their tasks then find it planned."""
    began, revision = timezone.now(), row.cluster.revision
    same = PlanQuestion.objects.filter(cluster=row.cluster, kind=row.kind).exclude(pk=row.pk)
    waited_for = same.filter(asked_at__gt=began - 2 * timedelta(seconds=EXPIRES_S))
    rows = [row, *waited_for.filter(IS_OPEN).order_by("asked_at")[: MOST_TOGETHER - 1]]
    answers = TOGETHER[row.kind](row.cluster, [one.question for one in rows])
    for one, made in zip(rows, answers, strict=False):
        if made is None:
            one.delete()
        else:
            _keep(one, made, began, revision)


def _keep(row: PlanQuestion, made: Json, began: datetime, revision: int) -> None:
    """Unless it was replaced by another question meanwhile."""
    now_asked = PlanQuestion.objects.filter(pk=row.pk, question=row.question)
    now_asked.update(answer=made, planned_at=began, revision=revision)


def _row(cluster: Cluster, kind: str, question: Json) -> PlanQuestion:
    row, _ = PlanQuestion.objects.get_or_create(
        cluster=cluster, digest=digest_of(kind, question),
        defaults={"kind": kind, "question": question, "asked_at": NEVER},
    )  # fmt: skip
    row.cluster = cluster
    if row.question != question:
        row.question, row.asked_at, row.answer, row.planned_at = question, NEVER, None, None
        row.save(update_fields=["question", "asked_at", "answer", "planned_at"])
    return row


def _ask(asked_id: int) -> None:
    """A worker, once the row can be seen by it."""
    transaction.on_commit(lambda: _send(asked_id))


def _send(asked_id: int) -> None:
    try:
        current_app.send_task(TASK, args=[asked_id], expires=EXPIRES_S, retry=False)
    except OperationalError as error:
        # The page says that it is still to come, and asks again.
        log.warning("plan %s: the broker does not answer: %s", asked_id, error)


def _state_of(row: PlanQuestion, now: datetime) -> PlanState:
    is_open = row.planned_at is None or row.planned_at < row.asked_at
    is_shown = row.planned_at is not None and now - row.planned_at < SHOWN
    return PlanState(row.answer if is_shown else None, is_open, row.asked_at)


def _serves(row: PlanQuestion, revision: int, now: datetime) -> bool:
    """A fault is no plan: it may be over though nothing has changed here."""
    if row.answer is None or row.planned_at is None:
        return False
    age, is_plan = now - row.planned_at, "fault" not in row.answer
    return age < FRESH or (is_plan and row.revision == revision and age < SHOWN)


def _is_on_its_way(row: PlanQuestion, now: datetime) -> bool:
    is_open = row.planned_at is None or row.planned_at < row.asked_at
    return is_open and (now - row.asked_at).total_seconds() < EXPIRES_S


def digest_of(kind: str, question: Json) -> str:
    """Of what of it stays where questions take each other's place, else of the whole."""
    question = {name: question[name] for name in IN_PLACE.get(kind, question)}
    return sha256(dumps([kind, question], sort_keys=True).encode()).hexdigest()


def ask_starts(
    cluster: Cluster, kind: str, question: Json, *, wait_s: float = 0.0
) -> PredictedStarts:
    """When it would start, as far as a worker said within ``wait_s`` seconds."""
    state = _ask_and_wait(cluster, kind, question, wait_s)
    return starts.read(state.answer, cluster.now(), is_open=state.is_open and state.answer is None)


def ask_run_times(
    cluster: Cluster, question: Json | None, *, wait_s: float
) -> dict[str, ExpectedRunTime] | None:
    """By class how long it would run, empty where there is nothing to ask; None where no worker said so
    within ``wait_s`` seconds."""
    if question is None:
        return {}
    found = _ask_and_wait(cluster, RUN_TIME, question, wait_s).answer
    return None if found is None else run_times.expected_of(found)


def _ask_and_wait(cluster: Cluster, kind: str, question: Json, wait_s: float) -> PlanState:
    state = ask(cluster, kind, question)
    until = time.monotonic() + wait_s
    while state.answer is None and time.monotonic() < until:
        time.sleep(LOOKS_EVERY_S)
        state = look(cluster, kind, question) or state
    return state


def starts_of(
    user: User, work: Workload, change: WorkloadChange, compared: Comparison, *, wait_s: float = 0.0
) -> PredictedStarts:
    """When ``work`` starts ``before`` and ``after`` the ``change``, of those of the two that only wait."""
    if not (compared.before.waits or compared.after.waits):
        return NOTHING_ASKED
    question = change_question(user, work, change)
    both = ask_starts(work.cluster, CHANGED, question, wait_s=wait_s)
    waits = {"before": compared.before.waits, "after": compared.after.waits}
    return replace(both, found={key: one for key, one in both.found.items() if waits[key]})
