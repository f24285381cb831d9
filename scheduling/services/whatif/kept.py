"""Questions that are asked, worked on, kept and found again.

1. ``ask`` writes the question down after its document was read; a task answers it.
2. ``answer`` plans at once, looks ahead, then replays; it notes how far it is, and stops when cancelled.
3. ``cancel``, ``keep`` and ``drop`` are the other doors.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.db import transaction
from kubernetes.config import ConfigException

from scheduling.cluster.connection.client import ApiError
from scheduling.engine import model as m
from scheduling.models import Cluster, WhatIf, WhatIfKind, WhatIfState
from scheduling.services.errors import ServiceError
from scheduling.services.ledger.past import past_of
from scheduling.services.snapshot import build as snapshots
from scheduling.services.starts.futures import Ahead, look_ahead
from scheduling.services.starts.known import known_of
from scheduling.services.starts.outcomes import correction_of
from scheduling.services.whatif import told
from scheduling.services.whatif.changes import Changes, read
from scheduling.services.whatif.now import at_once
from scheduling.services.whatif.replay import CancelledError, replayed

log = logging.getLogger(__name__)

MOST_DAYS = 28
OPEN = (WhatIfState.WAITING, WhatIfState.RUNNING)
MOST_OPEN = 20
"""Questions of a cluster that wait or run."""
FORGOTTEN = timedelta(days=30)
FUTURES = 40
AT_ONCE_PCT, AHEAD_PCT = 5, 25
"""How far it is once the plans are made, and once the futures are lived."""


def ask(
    *, cluster: Cluster, document: Any, author: str, days: int = 7, replays: bool = True
) -> WhatIf:
    """Write a question down. Raises ChangeError; ServiceError where too many wait."""
    changes = read(document)
    if not 1 <= days <= MOST_DAYS:
        raise ServiceError(
            "bad_days", "So many days are not replayed.", f"Ask for 1 to {MOST_DAYS}.", field="days"
        )
    _check_names(cluster, changes)
    with transaction.atomic():
        if WhatIf.objects.filter(cluster=cluster, state__in=OPEN).count() >= MOST_OPEN:
            raise ServiceError(
                "busy", "Too many questions wait.", "Cancel one, or ask again later."
            )
        return WhatIf.objects.create(
            cluster=cluster,
            author=author,
            changes=changes.document(),
            title=told.title(changes),
            kind=WhatIfKind.REPLAY if replays else WhatIfKind.NOW,
            days=days,
            asked_at=cluster.now(),
        )


def _check_names(cluster: Cluster, changes: Changes) -> None:
    """Against the live cluster where it answers; else the answer will say it."""
    try:
        changes.applied(snapshots.live(cluster))
    except (ApiError, ConfigException, OSError) as error:
        raise ServiceError(
            "cluster_unreachable",
            f"Cluster {cluster.name} does not answer.",
            "Check again in a moment.",
        ) from error


def answer(question_id: int) -> None:
    """Work on a question that waits; nothing where it is gone, cancelled or taken by another."""
    taken = WhatIf.objects.filter(pk=question_id, state=WhatIfState.WAITING)
    if not taken.update(state=WhatIfState.RUNNING, progress=1):
        return
    question = WhatIf.objects.select_related("cluster").get(pk=question_id)
    try:
        _work(question)
    except CancelledError:
        log.info("what-if %s was cancelled", question_id)
    except (ServiceError, ApiError, OSError, m.SnapshotError) as error:
        _end(question, WhatIfState.FAILED, fault=str(error)[:300])
    except Exception:
        _end(
            question,
            WhatIfState.FAILED,
            fault="It could not be worked out. Ask again, or an admin.",
        )
        raise


def _work(question: WhatIf) -> None:
    changes = read(question.changes)
    cluster = question.cluster
    snapshot = snapshots.live(cluster)
    planned = at_once(snapshot, changes)
    question.answer = {"at": snapshot.now.isoformat()} | told.of_plans(planned, snapshot)
    _progress(question, AT_ONCE_PCT)
    question.answer["starts"] = told.of_futures(*_ahead(cluster, snapshot, changes), snapshot)
    _progress(question, AHEAD_PCT)
    if question.kind == WhatIfKind.REPLAY:
        past = past_of(cluster, days=question.days, snapshot=snapshot)
        left = 100 - AHEAD_PCT
        found = replayed(
            snapshot,
            past,
            changes,
            progress=lambda p: _progress(question, AHEAD_PCT + p * left // 100),
        )
        question.answer["replay"] = told.of_replay(found, past)
        if len(changes.each) > 1:
            question.answer["alone"] = [
                told.alone(one, at_once(snapshot, one), replayed(snapshot, past, one, replays=0))
                for one in changes.alone()
            ]
    _end(question, WhatIfState.DONE)


def _ahead(cluster: Cluster, snapshot: m.Snapshot, changes: Changes) -> tuple[Any, Any]:
    """Bands without and with the changes, from the same dice, corrected as forecasts are."""
    known = known_of(cluster, snapshot.now)
    correction = correction_of(cluster, snapshot.now)

    def corrected(ahead: Ahead) -> dict[str, Any]:
        return {name: correction.correct(band) for name, band in ahead.bands().items()}

    before = look_ahead(snapshot, known, futures=FUTURES)
    after = look_ahead(changes.applied(snapshot), known, futures=FUTURES)
    return corrected(before), corrected(after)


def _progress(question: WhatIf, percent: int) -> None:
    """Raises CancelledError when the row says so or is gone."""
    running = WhatIf.objects.filter(pk=question.pk, state=WhatIfState.RUNNING)
    if not running.update(progress=min(99, percent), answer=question.answer):
        raise CancelledError


def _end(question: WhatIf, state: WhatIfState, *, fault: str = "") -> None:
    running = WhatIf.objects.filter(pk=question.pk, state=WhatIfState.RUNNING)
    running.update(
        state=state,
        fault=fault,
        progress=100 if state == WhatIfState.DONE else question.progress,
        answer=question.answer,
        done_at=question.cluster.now(),
    )


def cancel(question: WhatIf) -> bool:
    """Whether it waited or ran still."""
    mine = WhatIf.objects.filter(pk=question.pk, state__in=OPEN)
    return bool(mine.update(state=WhatIfState.CANCELLED, done_at=question.cluster.now()))


def keep(question: WhatIf, *, is_kept: bool = True) -> None:
    WhatIf.objects.filter(pk=question.pk).update(is_kept=is_kept)


def drop(question: WhatIf) -> None:
    """It is gone, answered or not."""
    WhatIf.objects.filter(pk=question.pk).delete()


def forget(cluster: Cluster) -> int:
    """Drop what nobody kept and is old; how many."""
    old = WhatIf.objects.filter(
        cluster=cluster, is_kept=False, asked_at__lt=cluster.now() - FORGOTTEN
    )
    return old.delete()[0]
