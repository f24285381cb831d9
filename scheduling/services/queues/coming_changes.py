"""What is to come of the quotas of a subtree: each moment at which figures change, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.db.models import Q

from scheduling.models import Queue, Quota, QuotaChange
from scheduling.models.queues import below
from scheduling.services.queues.checks import values_of
from scheduling.services.queues.faults import as_typed
from scheduling.services.queues.values import Field


@dataclass(frozen=True, slots=True)
class QuotaStep:
    """``cells`` as those of a ``QuotaChange``; ``change`` is whose edit begins, or ends, then."""

    at: datetime
    cells: tuple[Mapping[str, Any], ...]
    change: QuotaChange | None

    @property
    def is_end(self) -> bool:
        """Whether the values of before come back."""
        return self.change is not None and self.change.effective_until == self.at


def coming(queue: Queue, now: datetime) -> list[QuotaStep]:
    """From the rows themselves, so that what was reverted or overtaken is not told. One query."""
    ahead = Q(effective_until=None) | Q(effective_until__gt=now)
    rows = (
        Quota.objects.filter(ahead, below(queue.cluster_id, queue.path, on="queue__"))
        .select_related("queue", "gpu_class", "change__author")
        .order_by("queue__path", "gpu_class__position", "effective_from")
    )
    lines: dict[tuple[int, int], list[Quota]] = defaultdict(list)
    for row in rows:
        lines[row.queue_id, row.gpu_class_id].append(row)
    cells: dict[tuple[datetime, int], list[Mapping[str, Any]]] = defaultdict(list)
    whose: dict[tuple[datetime, int], QuotaChange | None] = {}
    for line in lines.values():
        for before, after in pairwise(line):
            key = (after.effective_from, after.change_id or 0)
            cells[key].extend(_cells(before, after))
            whose[key] = after.change
    return [QuotaStep(key[0], tuple(cells[key]), whose[key]) for key in sorted(cells) if cells[key]]


def _cells(before: Quota, after: Quota) -> Iterator[Mapping[str, Any]]:
    was, will = values_of(before), values_of(after)
    for field in Field:
        if was.get(field) != will.get(field):
            sides = (as_typed(field, values.get(field)) for values in (was, will))
            old, new = (None if side is None else float(side) for side in sides)
            yield {
                "queue": after.queue.name,
                "gpu_class": after.gpu_class.name,
                "field": field.value,
                "before": old,
                "after": new,
            }
