"""An edit of quotas with what is expected of it: planned before it is saved, and kept with the change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.models import User
from portal.approvals.loans.previews import with_loans
from portal.approvals.plan_faults import or_fault
from portal.approvals.previews import is_late, outcome_of
from scheduling.models import Cluster, Queue, QuotaChange, Study, StudyKind, StudyState
from scheduling.services.errors import ServiceError
from scheduling.services.queues.faults import QuotaCell, as_typed
from scheduling.services.queues.save import cells_back, grid, revert_change, save_quotas
from scheduling.services.studies import doors
from scheduling.services.studies.what_if import ask_of_edit
from scheduling.services.studies.whatif.changes import read
from scheduling.services.studies.whatif.documents import changes_of
from scheduling.services.studies.whatif.preview import preview

Json = dict[str, Any]
STILL_TRUE = timedelta(days=1)
"""So long the last days lived again with an edit answer for the same edit."""


def planned(cluster: Cluster, cells: Iterable[QuotaCell]) -> Json:
    """Everything that the edit would do if it held from now on, to be kept; where it can't be planned, the
    sentence that says why; empty where it decides nothing."""
    changes = changes_of(cells)
    if not changes:
        return {}
    return or_fault(lambda: {**preview(cluster, with_loans(cluster, changes)), "changes": changes})


PLANNED_WITH = "planned_with"
"""Of what is kept with an edit that holds again: the id of the first, which was planned for all of them."""


def expectation(answer: Mapping[str, Any]) -> str:
    """What was expected of a saved edit, in numbers; empty where nothing was planned."""
    if "lines" not in answer:
        return ""
    return outcome_of((line["kind"], is_late(line)) for line in answer["lines"])


def save(
    *,
    queue: Queue,
    cells: Sequence[QuotaCell],
    author: User,
    reason: str,
    effective_from: datetime | None = None,
    effective_until: datetime | None = None,
    version: int | None = None,
    expected: Json | None = None,
    again: Sequence[tuple[datetime, datetime]] = (),
) -> QuotaChange:
    """Save an edit with what is ``expected`` of it, by default planned now, and have the last days lived
    again with it. In each span of ``again`` it holds once more, and leads to the first. Raises as
    ``save_quotas``; then nothing is saved."""
    expected = planned(queue.cluster, cells) if expected is None else expected
    base = _base(queue, cells)
    edit = partial(save_quotas, queue=queue, cells=cells, author=author, reason=reason)
    with transaction.atomic():
        change = edit(
            effective_from=effective_from,
            effective_until=effective_until,
            version=version,
            expected=expected,
        )
        for start, end in again:
            edit(effective_from=start, effective_until=end, expected={PLANNED_WITH: change.pk})
    _keep_replay(change, changes_of(cells), base, author)
    return change


def revert(*, change: QuotaChange, author: User, reason: str) -> QuotaChange:
    """Put back what ``change`` replaced: an edit like any other. Raises as ``revert_change``."""
    cells = cells_back(change)
    base = _base(change.queue, cells)
    made = revert_change(
        change=change, author=author, reason=reason, expected=planned(change.cluster, cells)
    )
    _keep_replay(made, changes_of(cells), base, author)
    return made


def replay_of(cluster: Cluster, author: User, cells: Iterable[QuotaCell]) -> Study | None:
    """The last days lived again with this edit, if the person had that asked lately."""
    return _ask(cluster, author, changes_of(cells))


def replay(queue: Queue, author: User, cells: Sequence[QuotaCell]) -> Study:
    """The same, asked now where it was not before or came to nothing. Raises ServiceError."""
    return _asked_or_new(queue.cluster, author, changes_of(cells), _base(queue, cells))


def replays_of(
    cluster: Cluster, author: User, forms: Sequence[Sequence[Json]]
) -> list[Study | None]:
    """The same of several forms of one edit, in one query."""
    lately = list(_lately(cluster, author))
    return [_like(lately, changes) for changes in forms]


def replays(
    cluster: Cluster, author: User, forms: Iterable[Sequence[Json]], base: Sequence[Json]
) -> None:
    """All of them, asked where they were not before or came to nothing. Raises ServiceError."""
    for changes in forms:
        _asked_or_new(cluster, author, changes, base)


def _ask(cluster: Cluster, author: User, changes: Sequence[Json]) -> Study | None:
    return _like(_lately(cluster, author), changes)


def _lately(cluster: Cluster, author: User) -> QuerySet[Study]:
    since = cluster.now() - STILL_TRUE
    mine = Study.objects.filter(cluster=cluster, author=author.get_username(), asked_at__gt=since)
    return mine.filter(kind=StudyKind.EDIT)


def _like(lately: Iterable[Study], changes: Sequence[Json]) -> Study | None:
    document = read(changes).document() if changes else []
    return next((one for one in lately if one.changes == document), None)


def _asked_or_new(
    cluster: Cluster, author: User, changes: Sequence[Json], base: Sequence[Json]
) -> Study:
    found = _ask(cluster, author, changes)
    if found is not None and found.state not in (StudyState.CANCELLED, StudyState.FAILED):
        return found
    question = ask_of_edit(
        cluster=cluster, document=changes, base=base, author=author.get_username()
    )
    doors.start(question)
    return question


def _keep_replay(
    change: QuotaChange, changes: Sequence[Json], base: Sequence[Json], author: User
) -> None:
    """None where too many wait: the change is saved, and that is what counts."""
    if "lines" not in change.expected:
        return
    try:
        question = _asked_or_new(change.cluster, author, changes, base)
    except ServiceError:
        return
    doors.keep(question)
    change.expected = {**change.expected, "what_if": question.pk}
    change.save(update_fields=["expected"])


def _base(queue: Queue, cells: Iterable[QuotaCell]) -> list[Json]:
    """The changes that put back what is in force now, cell by cell."""
    before = {row.queue.name: row.values for row in grid(queue, queue.cluster.now()).rows}
    back = [
        QuotaCell(
            cell.queue,
            cell.gpu_class,
            cell.field,
            as_typed(cell.field, before[cell.queue][cell.gpu_class].get(cell.field)),
        )
        for cell in cells
        if cell.gpu_class in before.get(cell.queue, ())
    ]
    return changes_of(back)
