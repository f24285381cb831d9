"""The doors of every study: written down, started, noted, cancelled, kept, dropped, forgotten.

1. ``write`` keeps the study, its variants and a row for each life; a kind's ``ask`` calls it.
2. ``start`` has tasks live it (``running``).
3. ``note`` says how far a life is, and ends it where the study was cancelled or dropped.
4. ``cancel`` stops one variant or all; what is lived already stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduling.models import Cluster, Result, Study, StudyKind, StudyState, Variant
from scheduling.models.studies import OPEN
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.studies.kinds import KINDS, StudyRules, kind_of
from scheduling.services.studies.whatif.replay import CancelledError

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=5)
"""Real time after which a life that nobody noted is taken by another; one takes seconds."""

AWAITED_TASK, TASK = "scheduling.tasks.answer_study", "scheduling.tasks.live_study"
Way = tuple[str, str, list[dict[str, Any]]]
"""Letter, name and changes of a variant."""


@transaction.atomic
def write(
    *,
    cluster: Cluster,
    kind: StudyKind,
    ways: Iterable[Way],
    is_bounded: bool = True,
    **fields: Any,
) -> Study:
    """Raises ServiceError where as many as may be are open and ``is_bounded``."""
    row = KINDS[kind]
    if is_bounded:
        _refuse_more(cluster, row)
    study = Study.objects.create(cluster=cluster, kind=kind, asked_at=cluster.now(), **fields)
    for letter, name, changes in ways:
        variant = Variant.objects.create(
            study=study, letter=letter, name=name[:120], changes=changes
        )
        Result.objects.bulk_create(Result(variant=variant, seed=seed) for seed in study.seeds)
    if row.is_compared:
        facts = {"variants": [str(one) for one in study.variants.all()]}
        announce("lab.asked", actor=study.author, cluster=cluster, subject=study.name, after=facts)
    return study


def _refuse_more(cluster: Cluster, row: StudyRules) -> None:
    # Two that are asked at once are counted one after the other.
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    open_ = Study.objects.filter(cluster=cluster, kind__in=row.beside, state__in=OPEN)
    if open_.count() >= row.most_open:
        raise ServiceError("busy", row.busy, "Cancel one, or ask again later.")


def start(study: Study) -> None:
    """Have it lived, once its rows can be seen by whoever does."""
    tasks = 1 if kind_of(study.kind).is_awaited else settings.WEIR_LAB_TASKS
    for _ in range(tasks):
        transaction.on_commit(lambda: send(study.pk))


def send(study_id: int) -> None:
    """What the broker does not take now, beat sends again."""
    kind = Study.objects.filter(pk=study_id).values_list("kind", flat=True).first()
    if kind is None:
        return
    try:
        current_app.send_task(AWAITED_TASK if kind_of(kind).is_awaited else TASK, args=[study_id])
    except OperationalError as error:
        log.warning("study %s: the broker does not answer: %s", study_id, error)


def note(row: Result, percent: int, answer: dict[str, Any]) -> None:
    """How far a life is, and its answer up to there; the claim is renewed. Raises CancelledError."""
    mine = Result.objects.filter(pk=row.pk, claim=row.claim, variant__state__in=OPEN)
    running = Study.objects.filter(pk=row.variant.study_id, state=StudyState.RUNNING)
    if not mine.update(held_until=timezone.now() + LEASE) or not running.update(
        progress=min(99, percent), answer=answer
    ):
        raise CancelledError


def end(study_id: int, state: StudyState, *, fault: str = "", **more: Any) -> bool:
    """Whether it was open still. World and work, which are megabytes, go: nothing is lived of it any more."""
    mine = Study.objects.filter(pk=study_id, state__in=OPEN).select_related("cluster")
    study = mine.defer("world", "work").first()
    if study is None:
        return False
    percent = {"progress": 100} if state == StudyState.DONE else {}
    ended = mine.update(
        state=state, fault=fault, done_at=study.cluster.now(), world={}, work=[], **percent, **more
    )  # fmt: skip
    Variant.objects.filter(study_id=study_id, state__in=OPEN).update(state=state)
    return bool(ended)


def outcome(study_id: int) -> StudyState:
    """That of the variant that came furthest; what is cut short is done."""
    states = set(Variant.objects.filter(study_id=study_id).values_list("state", flat=True))
    if states <= {StudyState.CANCELLED, StudyState.FAILED}:
        return StudyState.FAILED if StudyState.FAILED in states else StudyState.CANCELLED
    return StudyState.DONE


def cancel(study: Study, *, letter: str = "", author: str = "") -> int:
    """Stop one variant, or all; how many waited or ran still."""
    mine = Variant.objects.filter(study=study, state__in=OPEN)
    if letter:
        mine = mine.filter(letter=letter)
    count = mine.update(state=StudyState.CANCELLED)
    if not letter:
        end(study.pk, StudyState.CANCELLED)
    elif not study.variants.filter(state__in=OPEN).exists():
        end(study.pk, outcome(study.pk))
    if count and kind_of(study.kind).is_compared:
        announce(
            "lab.cancelled", actor=author, cluster=study.cluster, subject=study.name,
            after={"variants": letter or "all"},
        )  # fmt: skip
    return count


def keep(study: Study, *, is_kept: bool = True) -> None:
    Study.objects.filter(pk=study.pk).update(is_kept=is_kept)


def drop(study: Study) -> None:
    """It is gone with all that was lived."""
    Study.objects.filter(pk=study.pk).delete()


def cancel_or_drop(study: Study, author: str) -> None:
    """Cancelled while it is open, gone once it has ended."""
    if not cancel(study, author=author):
        drop(study)


def forget(cluster: Cluster) -> int:
    """Drop what is old and that nobody chose to keep; how many rows."""
    count = 0
    for name, kind in KINDS.items():
        rows = Study.objects.filter(cluster=cluster, kind=name, is_kept=False)
        old = rows.filter(asked_at__lt=cluster.now() - kind.retention)
        count += old.exclude(variants__promoted_at__isnull=False).delete()[0]
    return count
