"""Questions that are asked, worked on, kept and found again.

1. ``ask`` writes the question down after its document was read, ``ask_of_edit`` one about an edit of quotas;
   ``start`` has a task answer it.
2. ``answer`` plans at once, looks ahead, then replays; it notes how far it is, and stops when cancelled.
3. ``cancel``, ``keep`` and ``drop`` are the other doors.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from celery import current_app
from django.db import transaction
from django.db.models import Q
from kombu.exceptions import OperationalError

from scheduling.cluster.connection.client import ApiError
from scheduling.engine import model as m
from scheduling.models import Cluster, WhatIf, WhatIfKind, WhatIfState
from scheduling.services.errors import ServiceError
from scheduling.services.ledger.past import past_of
from scheduling.services.snapshot import build as snapshots
from scheduling.services.snapshot.asked import live_or_refused
from scheduling.services.starts.futures import Ahead, look_ahead
from scheduling.services.starts.known import known_of
from scheduling.services.starts.outcomes import correction_of
from scheduling.services.whatif import told
from scheduling.services.whatif.changes import Changes, read
from scheduling.services.whatif.now import at_once
from scheduling.services.whatif.replay import CancelledError, replayed
from scheduling.simulation.ahead.correction import Kind

log = logging.getLogger(__name__)

DAYS, MOST_DAYS = 7, 28
OPEN = (WhatIfState.WAITING, WhatIfState.RUNNING)
MOST_OPEN = 20
"""Questions of a cluster that wait or run; those about edits of quotas count by themselves."""
FORGOTTEN = timedelta(days=30)
UNHEARD = "No worker could be told of it: the broker does not answer. Ask again in a moment."
FUTURES = 40
AT_ONCE_PCT, AHEAD_PCT = 5, 25
"""How far it is once the plans are made, and once the futures are lived."""


def ask(
    *,
    cluster: Cluster,
    document: Any,
    author: str,
    days: int = DAYS,
    replays: bool = True,
) -> WhatIf:
    """Write a question down. Raises ChangeError; ServiceError where too many wait."""
    changes = read(document)
    if not 1 <= days <= MOST_DAYS:
        raise ServiceError(
            "bad_days", "So many days are not replayed.", f"Ask for 1 to {MOST_DAYS}.", field="days"
        )
    _check_names(cluster, changes)
    kind = WhatIfKind.REPLAY if replays else WhatIfKind.NOW
    return _write(cluster, changes, author=author, kind=kind, days=days)


def ask_of_edit(*, cluster: Cluster, document: Any, base: Any, author: str) -> WhatIf:
    """Ask what the last days had been with an edit of quotas; ``base`` puts back what it replaces, so that
    the answer is the same whether or not the edit was saved by then. Raises as ``ask``."""
    kind = WhatIfKind.EDIT
    return _write(cluster, read(document), author=author, kind=kind, answer={"base": base})


def _write(
    cluster: Cluster,
    changes: Changes,
    *,
    author: str,
    kind: WhatIfKind,
    days: int = DAYS,
    answer: dict[str, Any] | None = None,
) -> WhatIf:
    # Apart, so that a day of edits keeps no operator from asking.
    beside = Q(kind=WhatIfKind.EDIT) if kind == WhatIfKind.EDIT else ~Q(kind=WhatIfKind.EDIT)
    with transaction.atomic():
        if WhatIf.objects.filter(beside, cluster=cluster, state__in=OPEN).count() >= MOST_OPEN:
            raise ServiceError(
                "busy", "Too many questions wait.", "Cancel one, or ask again later."
            )
        return WhatIf.objects.create(
            cluster=cluster,
            author=author,
            changes=changes.document(),
            title=told.title(changes),
            kind=kind,
            days=days,
            answer=answer or {},
            asked_at=cluster.now(),
        )


def start(question: WhatIf) -> None:
    """Have it answered, once its row can be seen by whoever does."""
    transaction.on_commit(lambda: _send(question.pk))


def _send(question_id: int) -> None:
    try:
        current_app.send_task("scheduling.tasks.answer_what_if", args=[question_id])
    except OperationalError as error:
        # What was saved with the question is saved.
        log.warning("what-if %s: the broker does not answer: %s", question_id, error)
        waits = WhatIf.objects.filter(pk=question_id, state=WhatIfState.WAITING)
        waits.update(state=WhatIfState.FAILED, fault=UNHEARD)


def _check_names(cluster: Cluster, changes: Changes) -> None:
    """Against the live cluster where it answers; else the answer will say it."""
    changes.applied(live_or_refused(cluster, "Check again in a moment."))


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
    snapshot = snapshots.live(question.cluster)
    if question.kind == WhatIfKind.EDIT:
        before = read(question.answer["base"]).applied(snapshot)
        question.answer["at"] = snapshot.now.isoformat()
        _live_again(question, before, changes, from_pct=0)
    else:
        _plan_and_look_ahead(question, snapshot, changes)
    if question.kind == WhatIfKind.REPLAY:
        _live_again(question, snapshot, changes, from_pct=AHEAD_PCT)
        _compare_alone(question, snapshot, changes)
    _end(question, WhatIfState.DONE)


def _plan_and_look_ahead(question: WhatIf, snapshot: m.Snapshot, changes: Changes) -> None:
    planned = at_once(snapshot, changes)
    question.answer = {"at": snapshot.now.isoformat()} | told.of_plans(planned, snapshot)
    _progress(question, AT_ONCE_PCT)
    ahead = _ahead(question.cluster, snapshot, changes)
    question.answer["starts"] = told.of_futures(*ahead, snapshot)
    _progress(question, AHEAD_PCT)


def _live_again(question: WhatIf, snapshot: m.Snapshot, changes: Changes, *, from_pct: int) -> None:
    past = past_of(question.cluster, days=question.days, snapshot=snapshot)
    found = replayed(
        snapshot,
        past,
        changes,
        progress=lambda p: _progress(question, from_pct + p * (100 - from_pct) // 100),
    )
    question.answer["replay"] = told.of_replay(found, past)


def _compare_alone(question: WhatIf, snapshot: m.Snapshot, changes: Changes) -> None:
    """Where several things change: what each does by itself."""
    if len(changes.each) < 2:
        return
    past = past_of(question.cluster, days=question.days, snapshot=snapshot)
    question.answer["alone"] = [
        told.alone(
            one, at_once(snapshot, one), replayed(snapshot, past, one, replays=0, with_own=False)
        )
        for one in changes.alone()
    ]


def _ahead(cluster: Cluster, snapshot: m.Snapshot, changes: Changes) -> tuple[Any, Any]:
    """Bands without and with the changes, from the same dice, corrected as forecasts are."""
    known = known_of(cluster, snapshot.now)
    correction = correction_of(cluster, snapshot.now)

    kinds = {
        w.name: Kind.of(w.gpus * w.members.min / m.MILLI, first=False) for w in snapshot.workloads
    }

    def corrected(ahead: Ahead) -> dict[str, Any]:
        return {
            name: correction.correct(band, kinds.get(name, Kind.SMALL))
            for name, band in ahead.bands().items()
        }

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
