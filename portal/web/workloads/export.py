"""The list of workloads as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import Case, F, QuerySet, Value, When
from django.db.models.functions import Coalesce, NullIf
from django.http import HttpResponse

from portal.display.csv import Table
from portal.display.filters import HOLDING
from portal.selectors.costs import hours_of
from portal.web.frame.requests import attached_csv
from scheduling.models import MILLI, Workload
from scheduling.services.words.told import Reader, Said, tell

GPUS = 1.0 / MILLI
HOURS = 1.0 / 3600
COLUMNS: dict[str, Any] = {
    "uid": F("uid"),
    "name": F("name"),
    "namespace": F("namespace"),
    "queue": Coalesce(NullIf(F("queue__path"), Value("")), F("queue_label")),
    "user": F("user"),
    "priority_class": F("priority_class__name"),
    "type": F("type"),
    "state": F("state"),
    "outcome": F("outcome"),
    "held": Case(When(held=True, then=Value("held")), default=Value("")),
    "position": F("position"),
    "reason": F("reason"),
    "sentence": F("sentence"),
    "gpus_requested": F("gpus") * F("min_members") * GPUS,
    "gpus_allocated": Case(
        When(state__in=HOLDING, then=F("gpus") * F("members") * GPUS), default=Value(0.0)
    ),
    "gpu_class": F("gpu_class__name"),
    "submitted_at": F("submitted_at"),
    "started_at": F("started_at"),
    "finished_at": F("finished_at"),
    "evictions": F("eviction_count"),
    "gpu_hours_held": F("pk"),
    "gpu_hours_lost": F("lost_gpu_s") * HOURS,
}


PLACE, SENTENCE, HELD = (
    list(COLUMNS).index(name) for name in ("queue", "sentence", "gpu_hours_held")
)
KEPT = ("cluster_id", "queue__path", "user", "reason", "sentence", "sealed", "numbers")
"""What a sentence is judged by, in the order of ``Said``; the label comes after it."""


def csv_of(workloads: QuerySet[Workload], name: str, reader: Reader) -> HttpResponse:
    """All of ``workloads`` as a download for ``reader``, in the order of their submission."""
    rows = list(_rows(workloads, reader, hours_of(workloads)))
    return attached_csv(Table("workloads", "Workloads", tuple(COLUMNS), rows), name)


def _rows(
    workloads: QuerySet[Workload], reader: Reader, held: Mapping[int, float]
) -> Iterator[tuple[Any, ...]]:
    """Plain values: a hundred thousand model objects would cost seconds."""
    named = {f"csv_{name}": value for name, value in COLUMNS.items()}
    ordered = workloads.order_by("submitted_at", "id").annotate(**named)
    for row in ordered.values_list(*named, *KEPT, "queue_label").iterator(chunk_size=5000):
        shown, (*kept, label) = list(row[: len(COLUMNS)]), row[len(COLUMNS) :]
        said = Said(*kept)
        shown[SENTENCE] = tell(said, reader).sentence
        shown[HELD] = held.get(shown[HELD], 0.0)
        if said.queue is not None and not reader.sees_queue(said.cluster_id, said.queue):
            shown[PLACE] = label
        yield tuple(shown)
