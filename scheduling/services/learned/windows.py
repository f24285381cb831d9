"""Which days are trained on and which judge: they never share a moment, warm-up included.

Of what the ledger has, the first half is trained on, the second half judges, in windows that follow each
other. Each is lived from a day of warm-up on, which counts on neither side.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from scheduling.engine import model as m
from scheduling.models import Cluster, LearnedOrder, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.lab.periods import known_since, read_past, read_work, work_document
from scheduling.simulation.ahead.period import Period

DAY = timedelta(days=1)
WARM_UP = DAY
LEAST_DAYS, MOST_DAYS = 6, 28
LATER = 2
"""Windows that judge before anything goes into shadow."""
LEAST_WORKLOADS = 30
"""Of each window: fewer say nothing."""
TRAINING = "training"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """``begin`` to ``end`` are lived, from ``since`` on they count."""

    begin: datetime
    since: datetime
    end: datetime

    @classmethod
    def of(cls, since: datetime, end: datetime) -> Span:
        return cls(since - WARM_UP, since, end)


@dataclass(frozen=True, slots=True)
class Cut:
    """How a past is divided: ``later`` begins where ``training`` ends, or after."""

    training: Span
    later: tuple[Span, ...]


def cut(cluster: Cluster, most_days: int = MOST_DAYS) -> Cut:
    """Of the past up to now, ``most_days`` of it at most. Raises ServiceError ``past_too_short``, with what
    is lacking."""
    now, first = cluster.now().replace(minute=0, second=0, microsecond=0), known_since(cluster)
    days = (now - first) // DAY if first else 0
    if days < LEAST_DAYS:
        raise ServiceError(
            "past_too_short",
            f"The ledger holds {days} whole {'day' if days == 1 else 'days'} of work, and {LEAST_DAYS} are"
            " needed: half to train on, half to judge by.",
            f"Train in {LEAST_DAYS - days} {'day' if LEAST_DAYS - days == 1 else 'days'}.",
        )
    days = min(days, most_days)
    begin = now - days * DAY
    middle = begin + days // 2 * DAY
    training = Span(begin, begin + WARM_UP, middle)
    each = (now - middle - WARM_UP) / LATER
    edges = [middle + WARM_UP + each * i for i in range(LATER + 1)]
    later = tuple(Span.of(a, b) for a, b in pairwise(edges))
    return Cut(training, later)


def read(cluster: Cluster, snapshot: m.Snapshot, span: Span, what: str) -> Period:
    """The work of ``span``. Raises ServiceError where that is too little to say anything, or too much."""
    rows = Workload.objects.filter(cluster=cluster, gpus__gt=0)
    count = rows.filter(submitted_at__gte=span.since, submitted_at__lt=span.end).count()
    if count < LEAST_WORKLOADS:
        raise ServiceError(
            "past_too_short",
            f"{count} workloads were submitted in the days {what}, and {LEAST_WORKLOADS} are needed.",
            "Train again once more work has come.",
        )
    return read_past(cluster, snapshot, span.since, span.end, WARM_UP)


def refuse_shared(order: LearnedOrder, span: Span) -> None:
    """Raises ServiceError where ``order`` was trained on any moment of ``span``."""
    if span.begin < order.trained_to and order.trained_from < span.end:
        raise ServiceError(
            "shared_window",
            f"{order} was trained on days of this window.",
            f"Judge it on days from {order.trained_to + WARM_UP:%d %b %Y %H:%M} UTC on.",
        )


def add(
    order: LearnedOrder, kind: str, span: Span, period: Period, orders: list[Json], name: str = ""
) -> None:
    """Have ``order``, which the caller saves, judged on ``span`` against ``orders`` ({key, name}); ``name``
    is that of the recording, if it is another one.

    Raises ServiceError for a span that it was trained on.
    """
    refuse_shared(order, span)
    key = f"{kind} {span.since:%F %H}"
    order.windows = [
        *(one for one in order.windows if one["key"] != key),
        {
            "key": key,
            "kind": kind,
            "begin": span.since.isoformat(),
            "end": span.end.isoformat(),
            "workloads": sum(period.judged),
            "trace": name,
            "orders": orders,
        },
    ]
    order.work = {**order.work, key: kept(span, period)}


def kept(span: Span, period: Period) -> Json:
    """As it stands in ``LearnedOrder.work``."""
    moments = {name: getattr(span, name).isoformat() for name in ("begin", "since", "end")}
    return {**moments, "jobs": work_document(period)}


def period_of(document: Json) -> Period:
    begin, since, end = (
        datetime.fromisoformat(document[name]) for name in ("begin", "since", "end")
    )
    return read_work(document["jobs"], begin, since, end)
