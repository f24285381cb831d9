"""The history of quota edits in words: ``h100-80gb nominal: speech 12 → 8, vision 12 → 16``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from portal.accounts.models import User
from portal.approvals.edits import PLANNED_WITH, expectation
from portal.display.format import number
from portal.teams.access import dividable_queues, visible_cells, visible_queues
from scheduling.models import Queue, QuotaChange
from scheduling.services.queues.coming_changes import QuotaStep
from scheduling.services.queues.coming_changes import coming as steps_of
from scheduling.services.queues.faults import WORDS
from scheduling.services.queues.save import Field, history, may_revert


@dataclass(frozen=True, slots=True)
class ChangedFigure:
    """What one change did to one figure of one class, queue by queue."""

    what: str
    moves: str


@dataclass(frozen=True, slots=True)
class Entry:
    change: QuotaChange
    lines: list[ChangedFigure]
    may_revert: bool

    @property
    def expected(self) -> str:
        return expectation(self.change.expected)

    @property
    def planned_with(self) -> int | None:
        """The id of the edit of the same queue that it repeats, which was planned for it."""
        return self.change.expected.get(PLANNED_WITH)

    @property
    def is_ahead(self) -> bool:
        return self.change.effective_from > self.change.at


def entries(queue: Queue, reading: Reading, *, most: int | None = None) -> tuple[list[Entry], int]:
    """The newest ``most`` changes of the subtree that touch queues its reader sees; how many there are."""
    listed = [shown for change in history(queue) if (shown := reading.entry(change))]
    return listed[:most], len(listed)


def entry(change: QuotaChange, queue: Queue, user: User, now: datetime) -> Entry | None:
    """None where it touches no queue that the user sees."""
    return Reading.of(queue, user, now).entry(change)


@dataclass(frozen=True, slots=True)
class ComingChange:
    """Figures that change at a moment to come."""

    step: QuotaStep
    lines: list[ChangedFigure]
    may_revert: bool


def coming(queue: Queue, reading: Reading) -> list[ComingChange]:
    """What is to come of the subtree, the soonest first, as far as the reader sees its queues."""
    return [one for step in steps_of(queue, reading.now) if (one := reading.coming(step))]


@dataclass(frozen=True, slots=True)
class Reading:
    """What its reader may be shown: ``seen`` are names of queues, ``divided`` their keys."""

    seen: Collection[str]
    divided: Collection[int]
    now: datetime

    @classmethod
    def of(cls, queue: Queue, user: User, now: datetime) -> Reading:
        seen = _in(visible_queues(user), queue).values_list("name", flat=True)
        divided = _in(dividable_queues(user), queue).values_list("pk", flat=True)
        return cls(set(seen), set(divided), now)

    def entry(self, change: QuotaChange) -> Entry | None:
        lines = list(_lines(cell for cell in change.cells if cell["queue"] in self.seen))
        revertible = change.queue_id in self.divided and may_revert(change, self.now)
        return Entry(change, lines, revertible) if lines else None

    def coming(self, step: QuotaStep) -> ComingChange | None:
        lines = list(_lines(cell for cell in step.cells if cell["queue"] in self.seen))
        change = step.change
        mine = change is not None and change.queue_id in self.divided
        return ComingChange(step, lines, mine and not step.is_end) if lines else None


def _in(queues: QuerySet[Queue], queue: Queue) -> QuerySet[Queue]:
    return queues.filter(cluster_id=queue.cluster_id)


def _lines(cells: Iterable[Mapping[str, Any]]) -> Iterator[ChangedFigure]:
    moves: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        place = cell["gpu_class"], WORDS[Field(cell["field"])]
        before, after = _figure(cell["before"]), _figure(cell["after"])
        moves.setdefault(place, []).append(f"{cell['queue']} {before} → {after}")
    for (gpu_class, word), said in moves.items():
        yield ChangedFigure(f"{gpu_class} {word}", ", ".join(said))


def _figure(value: float | None) -> str:
    return "all" if value is None else number(value, 3)


def backwards(change: QuotaChange, user: User) -> list[ChangedFigure]:
    """What a revert of ``change`` would do."""
    turned = (
        {**cell, "before": cell["after"], "after": cell["before"]}
        for cell in visible_cells(user, change)
    )
    return list(_lines(turned))
