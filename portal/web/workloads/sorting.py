"""The columns of a list of workloads, and the orders that they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.db.models import (
    Case,
    DurationField,
    ExpressionWrapper,
    F,
    IntegerField,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from portal.display.filters import HOLDING, WAITING
from portal.web.sorting import Column, Sort
from scheduling.models import Transition, Workload

FINISHED = "finished"
BY_STATE: Final = Sort("state")
BY_END: Final = Sort("ended", falls=True)

RANK = Case(
    When(state__in=WAITING, then=Value(0)),
    When(state__in=HOLDING, then=Value(1)),
    default=Value(2),
    output_field=IntegerField(),
)
"""What waits, what runs, what is done."""
SIZE = Case(
    When(state__in=HOLDING, then=F("gpus") * F("members")),
    default=F("gpus") * F("min_members"),
    output_field=IntegerField(),
)
"""Milli-GPU held, or asked for at least."""


def columns(state: str, *, with_user: bool) -> list[Column]:
    """Of the list under the tab ``state``; the last holds the buttons."""
    shown = [Column("Workload", "name")]
    if with_user:
        shown.append(Column("User", "user"))
    shown += [
        Column("State", "state"),
        Column("GPUs", "gpus", number=True, falls=True),
        Column(_time(state), "time", number=True, falls=True),
        Column("Ended", "ended", falls=True) if state == FINISHED else Column("Why"),
        Column(""),
    ]
    return shown


def _time(state: str) -> str:
    named = {"waiting": "Waiting", "holding": "Running", FINISHED: "Ran"}
    return f"{named.get(state, 'Waits or runs')}, h:min"


def default_sort(state: str) -> Sort:
    return BY_END if state == FINISHED else BY_STATE


def in_order(workloads: QuerySet[Workload], by: Sort, now: datetime) -> QuerySet[Workload]:
    """``workloads`` sorted; ties by what was submitted last, then by id, so that pages never overlap."""
    if by == BY_STATE:
        return workloads.order_by(RANK, *_newest())
    if by.key == "time":
        workloads = workloads.annotate(length=_length(now))
    keys: Mapping[str, Sequence[Any]] = {
        "name": ["name"],
        "user": ["user"],
        "state": [RANK, "state"],
        "gpus": [SIZE],
        "time": ["length"],
        "ended": ["finished_at"],
    }
    named = [F(key) if isinstance(key, str) else key for key in keys[by.key]]
    return workloads.order_by(
        *(key.desc(nulls_last=True) if by.falls else key.asc(nulls_last=True) for key in named),
        "-submitted_at",
        "-id",
    )


def _newest() -> list[Any]:
    """Done work by when it ended, the rest by when it was submitted."""
    return [Coalesce("finished_at", "submitted_at").desc(), F("id").desc()]


def _length(now: datetime) -> Combinable:
    """Of the present wait or run, of the last run once it is done."""
    waits = Transition.objects.filter(workload=OuterRef("pk"), to_state__in=WAITING)
    began = Subquery(waits.order_by("-at").values("at")[:1])
    since = Case(
        When(state__in=WAITING, then=Coalesce(began, F("submitted_at"))),
        default=Coalesce(F("started_at"), F("admitted_at"), F("submitted_at")),
    )
    return ExpressionWrapper(
        Coalesce(F("finished_at"), Value(now)) - since, output_field=DurationField()
    )
