"""What-ifs: the moment planned again with changes, starts looked ahead, and the last days lived again.

``ask`` writes a question down after its document was read, ``ask_of_edit`` one about an edit of quotas; both
have one life, which plans at once, looks ahead, then replays, and notes how far it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduling.engine import model as m
from scheduling.models import Cluster, Result, Study, StudyKind
from scheduling.services.errors import ServiceError
from scheduling.services.ledger.past import past_of
from scheduling.services.snapshot import build as snapshots
from scheduling.services.snapshot.live import live_or_refused
from scheduling.services.starts.futures import Ahead, look_ahead
from scheduling.services.starts.history import known_of
from scheduling.services.starts.outcomes import correction_of
from scheduling.services.studies import doors
from scheduling.services.studies.whatif import answers
from scheduling.services.studies.whatif.changes import QuestionChanges, read
from scheduling.services.studies.whatif.now import at_once
from scheduling.services.studies.whatif.replay import replayed
from scheduling.simulation.ahead.correction import ForecastKind

DAYS, MOST_DAYS = 7, 28
FUTURES = 40
AT_ONCE_PCT, AHEAD_PCT = 5, 25
"""How far it is once the plans are made, and once the futures are lived."""
Json = dict[str, Any]
Note = Callable[[int], None]


def ask(
    *, cluster: Cluster, document: Any, author: str, days: int = DAYS, replays: bool = True
) -> Study:
    """Write a question down. Raises ChangeError; ServiceError where too many wait."""
    changes = read(document)
    if not 1 <= days <= MOST_DAYS:
        raise ServiceError(
            "bad_days", "So many days are not replayed.", f"Ask for 1 to {MOST_DAYS}.", field="days"
        )
    # Against the live cluster where it answers; else the answer will say it.
    changes.applied(live_or_refused(cluster, "Check again in a moment."))
    kind = StudyKind.REPLAY if replays else StudyKind.NOW
    return _write(cluster, changes, kind, author, days=days)


def ask_of_edit(*, cluster: Cluster, document: Any, base: Any, author: str) -> Study:
    """Ask what the last days had been with an edit of quotas; ``base`` puts back what it replaces, so that
    the answer is the same whether or not the edit was saved by then. Raises as ``ask``."""
    return _write(cluster, read(document), StudyKind.EDIT, author, days=DAYS, base=base)


def _write(
    cluster: Cluster, changes: QuestionChanges, kind: StudyKind, author: str, **more: Any
) -> Study:
    name, document = answers.title(changes), changes.document()
    return doors.write(
        cluster=cluster, kind=kind, author=author, name=name, is_drawn=False,
        question={"changes": document, **more}, ways=[("B", name, document)],
    )  # fmt: skip


def live(row: Result) -> tuple[Json, Json]:
    """The whole answer: it stands with the study, as far as it goes."""
    study = row.variant.study
    changes = read(study.changes)
    snapshot = snapshots.live(study.cluster)
    answer: Json = {}

    def note(percent: int) -> None:
        doors.note(row, percent, answer)

    if study.kind == StudyKind.EDIT:
        before = read(study.question["base"]).applied(snapshot)
        answer |= {"base": study.question["base"], "at": snapshot.now.isoformat()}
        answer["replay"] = _live_again(study, before, changes, note, from_pct=0)
    else:
        answer |= {"at": snapshot.now.isoformat()} | answers.of_plans(
            at_once(snapshot, changes), snapshot
        )
        note(AT_ONCE_PCT)
        answer["starts"] = answers.of_futures(*_ahead(study.cluster, snapshot, changes), snapshot)
        note(AHEAD_PCT)
    if study.kind == StudyKind.REPLAY:
        answer["replay"] = _live_again(study, snapshot, changes, note, from_pct=AHEAD_PCT)
        answer |= _compare_alone(study, snapshot, changes)
    note(99)
    return {}, {}


def _live_again(
    study: Study, snapshot: m.Snapshot, changes: QuestionChanges, note: Note, *, from_pct: int
) -> Json:
    past = past_of(study.cluster, days=study.days, snapshot=snapshot)
    found = replayed(
        snapshot, past, changes, progress=lambda p: note(from_pct + p * (100 - from_pct) // 100)
    )
    return answers.of_replay(found, past)


def _compare_alone(study: Study, snapshot: m.Snapshot, changes: QuestionChanges) -> Json:
    """Where several things change: what each does by itself."""
    if len(changes.each) < 2:
        return {}
    past = past_of(study.cluster, days=study.days, snapshot=snapshot)
    return {
        "alone": [
            answers.alone(
                one,
                at_once(snapshot, one),
                replayed(snapshot, past, one, replays=0, with_own=False),
            )
            for one in changes.alone()
        ]
    }


def _ahead(cluster: Cluster, snapshot: m.Snapshot, changes: QuestionChanges) -> tuple[Any, Any]:
    """Bands without and with the changes, from the same dice, corrected as forecasts are."""
    known = known_of(cluster, snapshot.now)
    correction = correction_of(cluster, snapshot.now)

    kinds = {
        w.name: ForecastKind.of(w.gpus * w.members.min / m.MILLI, first=False)
        for w in snapshot.workloads
    }

    def corrected(ahead: Ahead) -> dict[str, Any]:
        return {
            name: correction.correct(band, kinds.get(name, ForecastKind.SMALL))
            for name, band in ahead.bands().items()
        }

    before = look_ahead(snapshot, known, futures=FUTURES)
    after = look_ahead(changes.applied(snapshot), known, futures=FUTURES)
    return corrected(before), corrected(after)
