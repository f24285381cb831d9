"""Lives of studies, by whoever is free: each is a row that is claimed, lived and written once.

1. ``work`` claims one life after the other: those of one seed before those of the next, so that variants are
   compared early. A claim ends by itself, so a killed worker's life is taken again.
2. ``LIVES`` says what a kind lives.
3. A result is written by the claim that it was lived under, else dropped: no life counts twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from uuid import uuid4

from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from scheduling.cluster.connection.client import ApiError
from scheduling.engine import model as m
from scheduling.models import Result, Study, StudyKind, StudyState, Variant
from scheduling.models.studies import OPEN
from scheduling.services.errors import ServiceError
from scheduling.services.studies import doors, what_if
from scheduling.services.studies.capacity import lives as capacity
from scheduling.services.studies.experiments import lives as experiments
from scheduling.services.studies.experiments.figures import Json
from scheduling.services.studies.kinds import AWAITED, kind_of
from scheduling.services.studies.whatif.replay import CancelledError
from scheduling.simulation.run.options import UnsettledError

log = logging.getLogger(__name__)

CHUNK_S = 15.0
"""CPU seconds for which a task lives, then lets others have their turn: on a busy machine as many lives as on
an idle one."""
UNEXPECTED = "It could not be worked out. Ask again, or an admin."
WORDS: Mapping[type[Exception], str] = {
    UnsettledError: "The engine finds no rest in this past. Change less at once, and tell whoever"
    " operates Weir.",
    MemoryError: "This past asks for more memory than there is. Choose a shorter one, or fewer nodes.",
}
FAULTS: tuple[type[Exception], ...] = (ServiceError, ApiError, OSError, m.SnapshotError, *WORDS)
"""What a life may end with by what was asked; all else is an error of Weir."""
Life = Callable[[Result], tuple[Json, Json]]
"""The figures of a life, over all and by queue."""
HEAVY = ("variant__study__world", "variant__study__work")
"""Megabytes, which a kind's lives read once for several of them."""
LIVES: Mapping[StudyKind, Life] = {
    StudyKind.NOW: what_if.live,
    StudyKind.REPLAY: what_if.live,
    StudyKind.EDIT: what_if.live,
    StudyKind.CAPACITY: capacity.live,
    StudyKind.EXPERIMENT: experiments.live,
    StudyKind.ADAPTING: experiments.live,
}


def unattended() -> list[int]:
    """Studies that another task could work on now, those of a killed worker among them."""
    now = timezone.now()
    free = _free(now)
    if _is_busy(now):
        free = free.filter(variant__study__kind__in=AWAITED)
    return sorted(set(free.values_list("variant__study_id", flat=True)))


def _is_busy(now: datetime) -> bool:
    """Whether as much is lived as may be that nobody waits for: the lane has other work, too."""
    claims = Result.objects.filter(done_at=None, held_until__gte=now)
    return claims.exclude(variant__study__kind__in=AWAITED).count() >= settings.WEIR_LAB_TASKS


def work(study_id: int, *, budget_s: float = CHUNK_S) -> bool:
    """Live for ``budget_s`` of CPU time, one life at least; whether this task should go on with more of the
    study."""
    began = time.thread_time()
    while (row := claim(study_id)) is not None:
        _live(row)
        if time.thread_time() - began >= budget_s:
            return study_id in unattended()
    return False


def _free(now: datetime) -> QuerySet[Result]:
    is_free = Q(held_until=None) | Q(held_until__lt=now)
    is_open = Q(variant__state__in=OPEN, variant__study__state__in=OPEN)
    return Result.objects.filter(is_free, is_open, done_at=None)


def claim(study_id: int) -> Result | None:
    """The next life that nobody works on, claimed; None where there is none, or others are busy enough."""
    while True:
        now = timezone.now()
        rows = _free(now).filter(variant__study_id=study_id).order_by("seed", "variant_id")
        row = rows.select_related("variant__study__cluster").defer(*HEAVY).first()
        if row is None or (row.variant.study.kind not in AWAITED and _is_busy(now)):
            return None
        row.claim, row.held_until = uuid4().hex, now + doors.LEASE
        is_free = Q(held_until=None) | Q(held_until__lt=now)
        mine = Result.objects.filter(is_free, pk=row.pk, done_at=None)
        if mine.update(claim=row.claim, held_until=row.held_until):
            waits = {"state": StudyState.WAITING}
            Variant.objects.filter(pk=row.variant_id, **waits).update(state=StudyState.RUNNING)
            Study.objects.filter(pk=study_id, **waits).update(state=StudyState.RUNNING)
            return row


def _live(row: Result) -> None:
    began = time.thread_time()
    try:
        found, queues = LIVES[StudyKind(row.variant.study.kind)](row)
    except CancelledError:
        log.info("study %s was cancelled", row.variant.study_id)
    except FAULTS as error:
        log.warning("variant %s of study %s: %s", row.variant, row.variant.study_id, error)
        _fail(row, WORDS.get(type(error), str(error)[:300]))
    except Exception:
        doors.end(row.variant.study_id, StudyState.FAILED, fault=UNEXPECTED)
        raise
    else:
        finish(row, found, queues, took_s=time.thread_time() - began)


def _fail(row: Result, fault: str) -> None:
    """The variant, and where nothing is told without it the study."""
    variant = Variant.objects.filter(pk=row.variant_id, state__in=OPEN)
    variant.update(state=StudyState.FAILED, fault=fault)
    Result.objects.filter(pk=row.pk, claim=row.claim).update(held_until=None)
    if kind_of(row.variant.study.kind).is_compared:
        _settle(row.variant.study_id)
    else:
        doors.end(row.variant.study_id, StudyState.FAILED, fault=fault)


def finish(row: Result, found: Json, queues: Json, *, took_s: float) -> bool:
    """Write a result; False where another has taken the life, or written it, meanwhile."""
    mine = Result.objects.filter(pk=row.pk, claim=row.claim, done_at=None)
    if not mine.update(figures=found, queues=queues, took_s=took_s, done_at=timezone.now()):
        return False
    Study.objects.filter(pk=row.variant.study_id).update(cpu_s=F("cpu_s") + took_s)
    _settle(row.variant.study_id)
    return True


def _settle(study_id: int) -> None:
    """How far it is; variants that are lived whole are done, and with the last of them the study, or once it
    has had as much of a core as it may."""
    rows = Result.objects.filter(variant__study_id=study_id)
    left = rows.filter(done_at=None, variant__state__in=OPEN)
    lived = Variant.objects.filter(study_id=study_id, state__in=OPEN)
    lived.exclude(pk__in=left.values("variant_id")).update(state=StudyState.DONE)
    open_ = Study.objects.filter(pk=study_id, state__in=OPEN)
    count = rows.count() or 1
    open_.update(progress=min(99, 100 * (count - left.count()) // count))
    spent_s, question = open_.values_list("cpu_s", "question").first() or (0, {})
    if spent_s >= question.get("most_cpu_s", float("inf")) or not left.exists():
        doors.end(study_id, doors.outcome(study_id))
