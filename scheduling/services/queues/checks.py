"""What an edit of quotas must satisfy before it is saved. Reads, never writes.

The rule of sums: at no moment of the edit's range may the children of a queue hold more nominal quota
together than the queue was given. The root is exempt: it holds what its nodes offer, and a division
that cannot meet every guarantee there is flagged as oversubscribed instead. An edit that only lessens
an excess which stood before passes, so that there is a way back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from scheduling.engine.reasons.wording import clock
from scheduling.models import GpuClass, Queue, Quota
from scheduling.services.queues.faults import EditFault, QuotaCell, cell_fault, figure, stored
from scheduling.services.queues.values import Field, Segment, Values, instants, patched, value_at

Key = tuple[int, int]
"""Primary keys of a queue and a GPU class."""
Timelines = dict[Key, list[Segment]]


@dataclass(slots=True)
class QuotaDraft:
    """An edit on its way: what stands there, and what would stand there during [start, end)."""

    top: Queue
    queues: Sequence[Queue]
    """``top`` and everything below it, parents before children."""
    classes: Mapping[str, GpuClass]
    start: datetime
    end: datetime | None
    before: Timelines
    after: Timelines = field(default_factory=dict)
    edits: dict[Key, dict[Field, int | Decimal | None]] = field(default_factory=dict)

    def nominal(self, timelines: Timelines, queue: Queue, gpu_class: GpuClass, at: datetime) -> int:
        return value_at(timelines.get((queue.pk, gpu_class.pk), ()), at).nominal

    def raised_by(self, queue: Queue, gpu_class: GpuClass, at: datetime) -> int:
        """Milli-GPU of nominal quota that the edit adds at ``at``; negative where it takes."""
        after = self.nominal(self.after, queue, gpu_class, at)
        return after - self.nominal(self.before, queue, gpu_class, at)


def timelines_of(queues: Iterable[Queue], since: datetime) -> Timelines:
    """Every stretch of these queues' quotas that reaches past ``since``, by queue and class."""
    found: Timelines = {}
    for row in Quota.objects.filter(queue__in=list(queues)).order_by("effective_from"):
        if row.effective_until is None or row.effective_until > since:
            found.setdefault((row.queue_id, row.gpu_class_id), []).append(segment_of(row))
    return found


def segment_of(row: Quota) -> Segment:
    return Segment(row.effective_from, row.effective_until, values_of(row))


def values_of(row: Quota) -> Values:
    return Values(
        row.nominal_gpus,
        row.borrowing_limit_gpus,
        row.lending_limit_gpus,
        row.weight,
        row.budget_gpu_hours,
    )


def range_faults(
    start: datetime | None, end: datetime | None, now: datetime, reason: str
) -> Iterator[EditFault]:
    """The edit as a whole: a reason, and a range that lies ahead and ends after it begins."""
    if not reason.strip():
        yield EditFault(
            "missing", "reason", "The history keeps a reason.", "Write why this changes."
        )
    elif len(reason.strip()) > 500:
        yield EditFault(
            "too_long", "reason", "The reason is too long.", "Use at most 500 characters."
        )
    if start is not None and start < now:
        yield EditFault(
            "in_the_past",
            "effective_from",
            f"{clock(start)} has passed, and what was in force stays as it was.",
            "Choose a later moment, or leave it empty for now.",
        )
    if end is not None and end <= (start or now):
        yield EditFault(
            "ends_before_it_begins",
            "effective_until",
            f"It ends on {clock(end)}, before it begins.",
            "Choose a later end, or leave it empty for no end.",
        )


def cell_faults(draft: QuotaDraft, cells: Sequence[QuotaCell]) -> Iterator[EditFault]:
    """Each figure by itself: its place in the subtree and the class, its sign and its size."""
    below = {q.name for q in draft.queues} - {draft.top.name}
    seen = Counter((c.queue, c.gpu_class, c.field) for c in cells)
    for cell in cells:
        at = (cell.field.value, cell.queue, cell.gpu_class)
        if cell.queue not in below:
            yield _at(at, "not_below", f"{cell.queue} is not below {draft.top.name}.",
                      f"Edit queues below {draft.top.name} only.")  # fmt: skip
        elif cell.gpu_class not in draft.classes:
            yield _at(at, "unknown_class", f"There is no GPU class {cell.gpu_class}.",
                      f"Use one of {', '.join(draft.classes)}.")  # fmt: skip
        elif seen[cell.queue, cell.gpu_class, cell.field] > 1:
            yield _at(at, "twice", "This figure is given twice.", "Give it once.")
        elif fault := cell_fault(cell):
            yield fault


def _at(at: tuple[str, str, str], code: str, sentence: str, remedy: str) -> EditFault:
    field_, queue, gpu_class = at
    return EditFault(code, field_, sentence, remedy, queue, gpu_class)


def apply_cells(draft: QuotaDraft, cells: Iterable[QuotaCell]) -> list[QuotaCell]:
    """Cut the edits into ``draft``; gives the cells that change something at its start."""
    keys = {q.name: q.pk for q in draft.queues}
    effective = []
    for cell in cells:
        key = keys[cell.queue], draft.classes[cell.gpu_class].pk
        value = stored(cell.field, cell.value)
        if value_at(draft.before.get(key, ()), draft.start).get(cell.field) != value:
            draft.edits.setdefault(key, {})[cell.field] = value
            effective.append(cell)
    draft.after = dict(draft.before)
    for key, edit in draft.edits.items():
        draft.after[key] = patched(
            draft.before.get(key, ()), start=draft.start, end=draft.end, edit=edit
        )
    return effective


@dataclass(frozen=True, slots=True)
class Excess:
    """The first moment at which the children of ``parent`` hold more than it was given."""

    parent: Queue
    children: Sequence[Queue]
    gpu_class: GpuClass
    at: datetime
    given: int
    total: int

    @property
    def too_many(self) -> int:
        return self.total - self.given


def breaks_sum(parent: Queue, total: int, given: int, worse: int) -> bool:
    """Whether the queues of ``parent`` would hold more than it was given, by ``worse`` more than before."""
    return not parent.is_root and total > given and worse > 0


def excesses(draft: QuotaDraft) -> Iterator[Excess]:
    """Broken sums that the edit causes or worsens, parents before children."""
    for parent in draft.queues:
        children = [q for q in draft.queues if q.parent_id == parent.pk]
        if parent.is_root or not children:
            continue
        for gpu_class in draft.classes.values():
            family = [(q.pk, gpu_class.pk) for q in (parent, *children)]
            if any(Field.NOMINAL in draft.edits.get(key, {}) for key in family):
                yield from _first_excess(draft, parent, children, gpu_class)


def _first_excess(
    draft: QuotaDraft, parent: Queue, children: Sequence[Queue], gpu_class: GpuClass
) -> Iterator[Excess]:
    family = [draft.after.get((q.pk, gpu_class.pk), []) for q in (parent, *children)]
    for at in instants(family, draft.start, draft.end):
        given = draft.nominal(draft.after, parent, gpu_class, at)
        total = sum(draft.nominal(draft.after, q, gpu_class, at) for q in children)
        worse = sum(draft.raised_by(q, gpu_class, at) for q in children) - draft.raised_by(
            parent, gpu_class, at
        )
        if breaks_sum(parent, total, given, worse):
            yield Excess(parent, children, gpu_class, at, given, total)
            return


def sum_fault(draft: QuotaDraft, excess: Excess) -> EditFault:
    """The sentence at the cell that asks for most, with two ways out."""
    asking = max(
        excess.children, key=lambda q: (draft.raised_by(q, excess.gpu_class, excess.at), -q.pk)
    )
    if draft.raised_by(asking, excess.gpu_class, excess.at) <= 0:
        asking = excess.parent
    when = "" if excess.at <= draft.top.cluster.now() else f" from {clock(excess.at)}"
    return EditFault(
        code="sum_above_parent",
        field=Field.NOMINAL.value,
        sentence=f"{excess.parent.name} was given {figure(excess.given)} and its queues would "
        f"hold {figure(excess.total)}{when}.",
        remedy=f"{_lower(draft, excess, asking)}, or {_raise(draft, excess)}.",
        queue=asking.name,
        gpu_class=excess.gpu_class.name,
        parent=excess.parent.name,
    )


def _lower(draft: QuotaDraft, excess: Excess, asking: Queue) -> str:
    """The sibling that can give the excess by itself, else all of them together."""
    others = [
        (draft.nominal(draft.after, q, excess.gpu_class, excess.at), q.name)
        for q in excess.children
        if q != asking
    ]
    able = [name for nominal, name in sorted(others, reverse=True) if nominal >= excess.too_many]
    whom = able[0] if able else f"the queues of {excess.parent.name} together"
    return f"Lower {whom} by {figure(excess.too_many)}"


def _raise(draft: QuotaDraft, excess: Excess) -> str:
    amount, parent = figure(excess.too_many), excess.parent
    if parent == draft.top:
        return f"ask for {amount} more for {parent.name}"
    givers = [
        q.name
        for q in draft.queues
        if q.parent_id == parent.parent_id
        and q != parent
        and draft.nominal(draft.after, q, excess.gpu_class, excess.at) > 0
    ]
    source = f" from {_listed(givers)}" if givers else ""
    return f"raise {parent.name} by {amount}{source}"


def _listed(names: Sequence[str]) -> str:
    """At most three by name: ``vision, speech or robotics``."""
    if len(names) > 3:
        return f"{', '.join(names[:2])} or {len(names) - 2} others"
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
