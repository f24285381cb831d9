"""What single workloads held in their lives, from the one ledger: a row for each stretch of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import FloatField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Least

from scheduling.models import MILLI, Transition
from scheduling.services.ledger.holds import OF_STEP
from scheduling.services.tables.instants import Epoch

Whose = tuple[int, int, str, str]
"""Queue and class, by id, user and type."""
LATER: Final = Q(at__gt=OuterRef("at")) | Q(at=OuterRef("at"), pk__gt=OuterRef("pk"))
NEXT: Final = Subquery(
    # The first bound is the one that the index knows.
    Transition.objects.filter(LATER, workload=OuterRef("workload_id"), at__gte=OuterRef("at"))
    .order_by("at", "pk")
    .values(at_s=Epoch("at"))[:1]
)


class Stretch(NamedTuple):
    """So many GPUs of a class held by one workload from one step to its next. Times since the epoch."""

    begin_s: float
    end_s: float
    gpus: float
    whose: Whose
    finished_s: float | None
    """When the workload ended, and how."""
    outcome: str

    def gpu_s(self, start_s: float, end_s: float) -> float:
        """GPU-seconds within [start, end)."""
        return self.gpus * max(0.0, min(self.end_s, end_s) - max(self.begin_s, start_s))


def stretches_of(
    steps: QuerySet[Transition], gpu_classes: Iterable[int], until: datetime
) -> Iterator[Stretch]:
    """Of the workloads of ``steps``, up to ``until``, those that held something of the classes. One query:
    the database looks up the next step of each that holds, so that what only waits costs nothing."""
    wanted, last = frozenset(gpu_classes), Value(until.timestamp(), FloatField())
    finished = Epoch("workload__finished_at")
    end = Least(Coalesce(NEXT, finished, last), last)
    rows = (
        steps.filter(gpus__gt=0)
        .annotate(begin_s=Epoch("at"), end_s=end, held_class=OF_STEP, finished_s=finished)
        .order_by("workload_id", "at", "id")
        .values_list(
            *("begin_s", "end_s", "gpus", "workload__queue_id", "held_class", "workload__user"),
            *("workload__type", "finished_s", "workload__outcome"),
        )
    )
    for begin, until_s, gpus, queue, gpu_class, user, kind, ended, outcome in rows.iterator(
        chunk_size=5000
    ):
        if until_s > begin and gpu_class in wanted:
            whose = (queue, gpu_class, user, kind)
            yield Stretch(begin, until_s, gpus / MILLI, whose, ended, outcome)
