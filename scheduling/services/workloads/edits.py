"""Edits of work that waits, with their authors: noted at the door, and by each cycle that finds it
otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from typing import Any, Final

from scheduling.models import EditKind, Workload, WorkloadEdit
from scheduling.models.workloads import WAITING
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.tables.bulk import write_columns

KINDS: Final[Mapping[str, EditKind]] = {f"work.{kind.value}": kind for kind in EditKind}
"""Kind of an event -> of the edit that it tells of."""
SIZE: Final = ("gpus", "min_members", "max_members", "shapes", "gpu_classes")
COLUMNS: Final = (*SIZE, "run_time_limit_s", "held", "turn")
PRIORITY: Final = "priority_class_id"
JUST_NOW: Final = timedelta(seconds=5)
"""So long a door may take to note what the cluster holds."""


def note(event: str, workload: Workload, actor: str) -> None:
    """That ``actor`` did it; what became otherwise the next cycle says. A cycle between the cluster's answer
    and this has said it already, of nobody known."""
    if event not in KINDS:
        return
    now, kind = workload.cluster.now(), KINDS[event]
    said = WorkloadEdit.objects.filter(workload=workload, actor="", at__gt=now - JUST_NOW).last()
    if said is None:
        WorkloadEdit.objects.create(workload=workload, at=now, kind=kind, actor=actor)
    else:
        WorkloadEdit.objects.filter(pk=said.pk).update(kind=kind, actor=actor)


def found(
    works: Mapping[str, Workload],
    replaced: Mapping[str, Mapping[str, Any]],
    rows: PolicyRows,
    at: datetime,
) -> list[WorkloadEdit]:
    """What a cycle found otherwise of those of ``works`` that wait, not saved; ``replaced`` are the values
    before, by column. Both by uid."""
    names = {one.pk: one.name for one in rows.priority_classes}
    made = (
        _edit(works[uid], values, names, at)
        for uid, values in replaced.items()
        if works[uid].state in WAITING and not works[uid]._state.adding
    )
    return [edit for edit in made if edit.before]


def _edit(
    row: Workload, replaced: Mapping[str, Any], names: Mapping[int, str], at: datetime
) -> WorkloadEdit:
    before = {name: replaced[name] for name in COLUMNS if name in replaced}
    after = {name: getattr(row, name) for name in before}
    if PRIORITY in replaced:
        before["priority_class"] = names.get(replaced[PRIORITY], "")
        after["priority_class"] = names.get(row.priority_class_id or 0, "")
    return WorkloadEdit(workload=row, at=at, before=before, after=after)


def save(edits: Iterable[WorkloadEdit]) -> None:
    """Each with whoever did it, where a door noted that; of several since the last cycle with the newest."""
    by_workload = {edit.workload_id: edit for edit in edits}
    if not by_workload:
        return
    noted = WorkloadEdit.objects.filter(workload__in=by_workload, before__isnull=True)
    newest = {edit.workload_id: edit for edit in noted}
    for pk, edit in newest.items():
        said = by_workload.pop(pk)
        edit.before, edit.after = said.before, said.after
    write_columns(list(newest.values()), ["before", "after"])
    noted.update(before={})
    WorkloadEdit.objects.bulk_create(by_workload.values())


def as_it_was(workload: Workload, edits: Sequence[WorkloadEdit], at: datetime) -> Workload:
    """With its size and classes at ``at``, in a copy that is not to be saved; ``edits`` in order of time."""
    was = copy(workload)
    for edit in reversed(edits):
        if edit.at > at:
            for name in SIZE:
                setattr(was, name, (edit.before or {}).get(name, getattr(was, name)))
    return was
