"""The one door through which quotas change, and what pages read of them.

What was in force is never overwritten: an edit ends the rows it replaces, adds rows of its own, and
where it has an end, adds the old values again from there. Saving changes no pod; the next cycle sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Max, Q, QuerySet

from scheduling.models import GpuClass, Queue, Quota, QuotaChange
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.queues.checks import (
    QuotaDraft,
    apply_cells,
    cell_faults,
    excesses,
    range_faults,
    segment_of,
    sum_fault,
    timelines_of,
    values_of,
)
from scheduling.services.queues.faults import EditFault, QuotaCell, QuotaError, as_typed
from scheduling.services.queues.tree import lock_tree, subtree
from scheduling.services.queues.values import Field, Segment, Values, value_at

__all__ = [
    "EditFault",
    "Field",
    "Grid",
    "GridRow",
    "QuotaCell",
    "QuotaError",
    "Values",
    "cells_back",
    "grid",
    "history",
    "may_revert",
    "revert_change",
    "save_quotas",
]


@dataclass(frozen=True, slots=True)
class GridRow:
    """A queue of the subtree, ``depth`` levels below its top, with its values by class name."""

    queue: Queue
    depth: int
    values: Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class Grid:
    """The quotas of a subtree in force at one moment; its first row is the top, set from above.

    ``version`` tells two states of the subtree's quotas apart; hand it back when saving.
    """

    queue: Queue
    at: datetime
    gpu_classes: Sequence[GpuClass]
    rows: Sequence[GridRow]
    version: int

    def children(self, parent: Queue) -> list[GridRow]:
        return [row for row in self.rows if row.queue.parent_id == parent.pk]


def grid(queue: Queue, at: datetime) -> Grid:
    """The subtree of ``queue``, depth first, as it is in force at ``at`` (aware UTC)."""
    tree = subtree(queue)
    queues = [q for q, _ in tree]
    classes = list(queue.cluster.gpu_classes.all())
    values = {
        (row.queue_id, row.gpu_class_id): values_of(row)
        for row in Quota.objects.filter(queue__in=queues).in_force(at)
    }
    rows = [
        GridRow(q, depth, {c.name: values.get((q.pk, c.pk), Values()) for c in classes})
        for q, depth in tree
    ]
    return Grid(queue, at, classes, rows, _version(queues))


def history(queue: Queue) -> QuerySet[QuotaChange]:
    """Changes that touched the subtree of ``queue``, newest first; their cells may reach past it."""
    inside = Queue.objects.below(queue)
    touched = Quota.objects.filter(queue__in=inside).exclude(change=None)
    return QuotaChange.objects.filter(
        Q(queue__in=inside) | Q(pk__in=touched.values("change"))
    ).select_related("author", "queue")


@transaction.atomic
def save_quotas(
    *,
    queue: Queue,
    cells: Iterable[QuotaCell],
    author: AbstractBaseUser | None,
    reason: str,
    effective_from: datetime | None = None,
    effective_until: datetime | None = None,
    version: int | None = None,
    expected: Mapping[str, Any] | None = None,
) -> QuotaChange:
    """Change quotas strictly below ``queue`` during [from, until); None means now and no end. ``expected``,
    what a plan said that it would do, is kept with it.

    In order: 1. lock the cluster's quotas; 2. refuse an edit of something that changed since
    ``version`` was read; 3. check every figure, the range and the sums; 4. keep who, when and why;
    5. cut the new values into the ranges; 6. tell live pages. Cells that say what is in force at the
    start are passed over.

    Raises QuotaError with a fault for each field, or ServiceError ``stale``.
    """
    cluster = lock_tree(queue.cluster)
    now = cluster.now()
    cells = list(cells)
    draft = _draft(queue, effective_from or now, effective_until)
    _refuse_stale(draft, version)
    _refuse(
        [*range_faults(effective_from, effective_until, now, reason), *cell_faults(draft, cells)]
    )
    effective = apply_cells(draft, cells)
    if not effective:
        _refuse([_NOTHING_CHANGES])
    _refuse([sum_fault(draft, excess) for excess in excesses(draft)])
    change = _record(draft, effective, author=author, reason=reason.strip(), at=now)
    if expected:
        change.expected = dict(expected)
        change.save(update_fields=["expected"])
    for key in draft.edits:
        _write(key, draft.after[key], change)
    _tell(change, author)
    cluster.touch()
    return change


def _tell(change: QuotaChange, author: AbstractBaseUser | None) -> None:
    def facts(side: str) -> dict[str, Any]:
        return {
            f"{cell['queue']}, {cell['gpu_class']}, {cell['field']}": cell[side]
            for cell in change.cells
        }

    more: dict[str, Any] = {"change": change.pk}
    if change.effective_until:
        more["until"] = change.effective_until.isoformat()
    announce(
        "quota.saved",
        actor=author,
        cluster=change.cluster,
        queue=change.queue.path,
        subject=change.queue.name,
        before=facts("before"),
        after=facts("after") | more,
        reason=change.reason,
    )


_NOTHING_CHANGES = EditFault(
    "nothing_changes", "cells", "No figure differs from what is in force.", "Edit a figure first."
)


def _draft(queue: Queue, start: datetime, end: datetime | None) -> QuotaDraft:
    queues = [q for q, _ in subtree(queue)]
    classes = {c.name: c for c in queue.cluster.gpu_classes.all()}
    return QuotaDraft(queue, queues, classes, start, end, before=timelines_of(queues, start))


def _refuse(faults: Sequence[EditFault]) -> None:
    if faults:
        raise QuotaError(faults)


def _version(queues: Iterable[Queue]) -> int:
    """The newest change among these queues' rows: every save leaves at least one row of its own."""
    newest = Quota.objects.filter(queue__in=list(queues)).aggregate(at=Max("change_id"))["at"]
    return newest or 0


def _refuse_stale(draft: QuotaDraft, version: int | None) -> None:
    newest = _version(draft.queues)
    if version is None or version == newest:
        return
    change = QuotaChange.objects.select_related("author").filter(pk=newest).first()
    who = change.author if change and change.author else "Somebody"
    raise ServiceError(
        "stale",
        f"{who} saved other quotas of {draft.top.name} while you were editing.",
        "Your edits are kept here: read what is in force now, then save again.",
        field="version",
    )


def _record(
    draft: QuotaDraft,
    cells: Iterable[QuotaCell],
    *,
    author: AbstractBaseUser | None,
    reason: str,
    at: datetime,
) -> QuotaChange:
    keys = {q.name: q.pk for q in draft.queues}
    lines = []
    for cell in cells:
        key = keys[cell.queue], draft.classes[cell.gpu_class].pk
        before = value_at(draft.before.get(key, ()), draft.start).get(cell.field)
        after = value_at(draft.after[key], draft.start).get(cell.field)
        lines.append(_line(cell, before, after))
    return QuotaChange.objects.create(
        cluster_id=draft.top.cluster_id,
        queue=draft.top,
        author_id=author.pk if author else None,
        reason=reason,
        at=at,
        effective_from=draft.start,
        effective_until=draft.end,
        cells=lines,
    )


def _line(
    cell: QuotaCell, before: int | Decimal | None, after: int | Decimal | None
) -> dict[str, Any]:
    return {
        "queue": cell.queue,
        "gpu_class": cell.gpu_class,
        "field": cell.field.value,
        "before": _number(as_typed(cell.field, before)),
        "after": _number(as_typed(cell.field, after)),
    }


def _number(value: Decimal | None) -> int | float | None:
    """As JSON has it; a thousandth of a GPU survives the way through a float exactly enough."""
    if value is None:
        return None
    return int(value) if value == int(value) else float(value)


def _write(key: tuple[int, int], wanted: Sequence[Segment], change: QuotaChange) -> None:
    """Make the rows say ``wanted`` from the change's start on; ends are cut before rows are added."""
    missing = {(s.start, s.values): s for s in wanted}
    rows = Quota.objects.filter(queue_id=key[0], gpu_class_id=key[1]).order_by("effective_from")
    for row in rows:
        if row.effective_until is not None and row.effective_until <= change.effective_from:
            continue
        segment = missing.pop((row.effective_from, values_of(row)), None)
        if segment is None:
            row.delete()  # begins at or after the change: it was never in force
        elif segment != segment_of(row):
            row.effective_until = segment.end
            row.save(update_fields=["effective_until"])
    for segment in missing.values():
        Quota.objects.create(
            queue_id=key[0],
            gpu_class_id=key[1],
            nominal_gpus=segment.values.nominal,
            borrowing_limit_gpus=segment.values.borrowing_limit,
            lending_limit_gpus=segment.values.lending_limit,
            weight=segment.values.weight,
            budget_gpu_hours=segment.values.budget_gpu_hours,
            effective_from=segment.start,
            effective_until=segment.end,
            change=change,
        )


def may_revert(change: QuotaChange, now: datetime) -> bool:
    """Whether the change still holds, or will."""
    return change.effective_until is None or change.effective_until > now


@transaction.atomic
def revert_change(
    *,
    change: QuotaChange,
    author: AbstractBaseUser | None,
    reason: str,
    expected: Mapping[str, Any] | None = None,
) -> QuotaChange:
    """Put back what ``change`` replaced, from now (or its start, if ahead) to its own end.

    A new change like any other, checked like any other. Raises QuotaError, or ServiceError
    ``ended`` when it no longer holds and ``changed_since`` when a later change replaced its figures.
    """
    cluster = lock_tree(change.cluster)
    now = cluster.now()
    if not may_revert(change, now):
        raise ServiceError("ended", "This change has ended.", "Its old values are back already.")
    start = max(now, change.effective_from)
    _refuse_replaced(change, start)
    return save_quotas(
        queue=change.queue,
        cells=cells_back(change),
        author=author,
        reason=reason,
        effective_from=None if start == now else start,
        effective_until=change.effective_until,
        expected=expected,
    )


def cells_back(change: QuotaChange) -> list[QuotaCell]:
    """The figures that ``change`` replaced."""
    return [_old(cell) for cell in change.cells]


def _old(cell: Mapping[str, Any]) -> QuotaCell:
    return QuotaCell(
        cell["queue"], cell["gpu_class"], Field(cell["field"]), _decimal(cell["before"])
    )


def _decimal(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(str(number))


def _refuse_replaced(change: QuotaChange, at: datetime) -> None:
    values = {(r.queue.name, name): v for r in grid(change.queue, at).rows
              for name, v in r.values.items()}  # fmt: skip
    for cell in change.cells:
        place, field = (cell["queue"], cell["gpu_class"]), Field(cell["field"])
        if place not in values:
            sentence = f"{cell['queue']} is no longer below {change.queue.name}."
            raise ServiceError("changed_since", sentence, "Edit the grid instead.")
        if as_typed(field, values[place].get(field)) != _decimal(cell["after"]):
            raise ServiceError(
                "changed_since",
                f"{field.value.replace('_', ' ')} of {cell['queue']} has changed again since.",
                "Revert the later change first, or edit the grid.",
            )
