"""Would less do? Each amount by the next plan, and by the last days lived again with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portal.accounts.models import User
from portal.approvals import edits
from portal.approvals.models import QuotaRequest
from portal.approvals.previews import Lesser, ReadablePreview
from portal.display.format import hmin
from portal.teams.reading import Reading
from portal.web.quotas.replay import Replay, replayed
from scheduling.models import Queue, Study, StudyState
from scheduling.models.studies import OPEN

Json = Mapping[str, Any]
NOT_LIVED = "–"


@dataclass(frozen=True, slots=True)
class LesserRow:
    """``waits``: the P90 of each queue of the table with so much."""

    amount: Lesser
    waits: Sequence[str]


@dataclass(frozen=True, slots=True)
class LesserTable:
    """``queues`` gets and gives; ``before`` has their P90 as things are."""

    rows: Sequence[LesserRow]
    queues: Sequence[str] = ()
    before: Sequence[tuple[str, str]] = ()
    progress: int | None = None
    """Percent, while the last days are lived again."""
    fault: str = ""
    replay: Replay | None = None
    """The last days lived again with the whole amount, once they are."""

    @property
    def is_asked(self) -> bool:
        return bool(self.queues)


def table(
    user: User, request: QuotaRequest, plan: ReadablePreview, answer: Json, giver: Queue | None
) -> LesserTable:
    """One query where nothing was lived again."""
    plain = [LesserRow(one, ()) for one in plan.lesser]
    again = answer.get("again")
    if again is None or request.queue is None:
        return LesserTable(plain)
    forms = dict(again["forms"])
    studies = edits.replays_of(
        request.cluster, user, [forms.get(one.gpus, ()) for one in plan.lesser]
    )
    if not any(studies):
        return LesserTable(plain)
    reader = Reading(user)
    sides = [request.queue, *([giver] if giver else [])]
    names = [q.name for q in sides if reader.sees_queue(q.cluster_id, q.path)]
    lived = [_waits(study) for study in studies]
    return LesserTable(
        rows=[
            LesserRow(one, [waits.get(name, ("", NOT_LIVED))[1] for name in names])
            for one, waits in zip(plan.lesser, lived, strict=True)
        ],
        queues=names,
        before=_before(names, lived),
        progress=_progress([one for one in studies if one]),
        fault=next((one.fault for one in studies if one and one.fault), ""),
        replay=_whole(user, plan.lesser, studies),
    )


def _waits(study: Study | None) -> dict[str, tuple[str, str]]:
    """Queue -> its P90 before and with the change."""
    if study is None or study.state != StudyState.DONE:
        return {}
    rows = [row for row in study.answer.get("replay", {}).get("queues", ()) if row["jobs"]]
    sides = {row["queue"]: row["p90_s"] for row in rows}
    return {name: (hmin(p90["before"]), hmin(p90["after"])) for name, p90 in sides.items()}


def _whole(user: User, amounts: Sequence[Lesser], studies: Sequence[Study | None]) -> Replay | None:
    pairs = zip(amounts, studies, strict=True)
    study = next((found for one, found in pairs if one.is_asked), None)
    is_done = study is not None and study.state == StudyState.DONE
    return replayed(user, study) if is_done else None


def _before(
    names: Sequence[str], lived: Sequence[Mapping[str, tuple[str, str]]]
) -> list[tuple[str, str]]:
    known = next((waits for waits in lived if waits), {})
    return [(name, known[name][0]) for name in names if name in known]


def _progress(studies: Sequence[Study]) -> int | None:
    if not any(one.state in OPEN for one in studies):
        return None
    return sum(100 if one.state not in OPEN else one.progress for one in studies) // len(studies)
