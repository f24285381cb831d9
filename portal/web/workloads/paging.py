"""Rows of a long list, a page at a time: sorted by their keys alone, and read whole only where shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from portal.display.filters import HOLDING, WAITING
from portal.web.sorting import Sort
from portal.web.workloads.sorting import BY_END, BY_STATE, FINISHED, in_order
from scheduling.models import Workload

RELATED = ("cluster", "queue", "gpu_class", "priority_class")


class ChainedRows(Sequence[Workload]):
    """``parts`` one after the other, each in its order, as a Paginator slices them."""

    def __init__(self, parts: Sequence[QuerySet[Workload]], counts: Sequence[int]) -> None:
        self._parts, self._counts = parts, counts

    def __len__(self) -> int:
        return sum(self._counts)

    def __getitem__(self, wanted: Any) -> Any:
        """Of a slice with an end: nobody asks for another."""
        keys = self._keys(wanted.start or 0, wanted.stop)
        found: dict[Any, Workload] = Workload.objects.select_related(*RELATED).in_bulk(keys)
        return [found[key] for key in keys if key in found]

    def _keys(self, start: int, stop: int) -> list[int]:
        keys: list[int] = []
        for part, count in zip(self._parts, self._counts, strict=True):
            if start < count and stop > 0:
                keys += part.values_list("pk", flat=True)[start : min(stop, count)]
            start, stop = max(0, start - count), stop - count
        return keys


def paged(
    found: QuerySet[Workload], by: Sort, counts: Mapping[str, int], now: datetime
) -> ChainedRows:
    """``found`` sorted; ``counts`` are its own, by state.

    What waits, what runs and what is done are three lists that indexes give in their order: where that is
    the order, none of a hundred thousand rows is sorted.
    """
    if by == BY_END:
        return ChainedRows([found.order_by("-finished_at", "-id")], [sum(counts.values())])
    if by != BY_STATE:
        return ChainedRows([in_order(found, by, now)], [sum(counts.values())])
    groups = [(WAITING, "-submitted_at"), (HOLDING, "-submitted_at"), ((FINISHED,), "-finished_at")]
    parts = [found.filter(state__in=of).order_by(newest, "-id") for of, newest in groups]
    return ChainedRows(parts, [sum(counts.get(state, 0) for state in of) for of, _ in groups])
