"""What an experiment is made of: its days, its world and its work, from the ledger or from a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from scheduling.engine import model as m
from scheduling.models import Cluster, PriorityClass
from scheduling.services.queues.rows import NO_PRIORITY_CLASS
from scheduling.services.studies.experiments import periods, traces, worlds
from scheduling.services.studies.experiments.mapping import period_of_trace
from scheduling.simulation.ahead.period import Period
from scheduling.simulation.traces import Trace

DAY = timedelta(days=1)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TraceQuestion:
    """A trace that is kept, by its name, or a file that is sent."""

    name: str
    content: bytes | None = None

    def opened(self) -> Trace:
        """Raises ServiceError."""
        if self.content is None:
            return traces.of_kept(self.name)
        return traces.of_sent(self.name, self.content)


@dataclass(frozen=True, slots=True)
class Days:
    """What is judged, [begin, end), and how much is lived before it."""

    begin: datetime
    end: datetime
    warm_up: timedelta


@dataclass(frozen=True, slots=True)
class StudiedPast:
    """``source`` and ``basis`` say whence work and world are; ``recorded`` what really came."""

    world: m.Snapshot
    period: Period
    source: Json
    basis: Json
    recorded: Json


def days_of_past(
    cluster: Cluster, begin: datetime | None, end: datetime | None, warm_up: timedelta
) -> Days:
    """Raises ServiceError where the ledger does not have them all."""
    if begin is None or end is None:
        raise periods.fault(
            "begin",
            "It is not said what is judged.",
            "Say begin and end; only of a trace may both be left out.",
        )
    periods.check(cluster, begin, end, warm_up)
    return Days(begin, end, warm_up)


def days_of_trace(
    trace: Trace, begin: datetime | None, end: datetime | None, warm_up: timedelta
) -> Days:
    """As they are said; where none is, as much of the trace as may be lived. Raises ServiceError."""
    periods.check_warm_up(warm_up)
    first, last = trace.origin, trace.submitted_at(len(trace) - 1)
    if begin is None and end is None:
        return _most_of(trace, first, last, warm_up)
    within = f"The trace has {first:%d %b %Y %H:%M} to {last:%d %b %Y %H:%M} UTC"
    if begin is None or end is None:
        raise periods.fault("begin", "One of the two days is missing.", "Say both, or neither.")
    periods.check_length(begin, end)
    if begin - warm_up < first - DAY or end > last + DAY:
        raise periods.fault(
            "begin", f"{within}.", "Choose days within it, warm-up included, or leave both empty."
        )
    return Days(begin, end, warm_up)


def _most_of(trace: Trace, first: datetime, last: datetime, warm_up: timedelta) -> Days:
    begin = first + warm_up
    end = min(last + timedelta(seconds=1), begin + timedelta(days=periods.MOST_DAYS))
    if len(trace) > periods.MOST_JOBS:
        end = min(end, trace.submitted_at(periods.MOST_JOBS))
    if begin >= end:
        raise periods.fault(
            "warm_up_days", f"Nothing of the trace is left to judge before {end:%d %b %Y %H:%M} UTC.",
            "Warm up for less.",
        )  # fmt: skip
    return Days(begin, end, warm_up)


def taken_from_past(
    cluster: Cluster, today: m.Snapshot, days: Days, *, of_today: bool = False
) -> StudiedPast:
    """In the world of the period, or today's. Raises ServiceError for a period without work, or with too
    much."""
    world, basis = (
        worlds.of_today(today)
        if of_today
        else worlds.of_period(cluster, today, days.begin, days.end)
    )
    period = periods.read_past(cluster, world, days.begin, days.end, days.warm_up)
    recorded = periods.recorded(cluster, days.begin, days.end)
    return StudiedPast(world, period, {"kind": "ledger"}, basis, recorded)


def taken_from_trace(today: m.Snapshot, trace: Trace, name: str, days: Days) -> StudiedPast:
    """The same of a trace, in today's world."""
    world, basis = worlds.of_today(today)
    period, how = period_of_trace(
        trace, world, days.begin, days.end, days.warm_up, priority_of(world)
    )
    periods.check_work(period.judged)
    span: Mapping[str, Any] = {
        "kind": "trace",
        "name": name,
        "rows": len(trace) + trace.left_out,
        "first": trace.origin.isoformat(),
        "last": trace.submitted_at(len(trace) - 1).isoformat(),
    }
    return StudiedPast(world, period, {**span, **how}, basis, {})


def priority_of(world: m.Snapshot) -> str:
    """That of whoever names none."""
    name = PriorityClass.objects.filter(is_default=True).values_list("name", flat=True).first()
    known = [one.name for one in world.priority_classes]
    wanted = name or NO_PRIORITY_CLASS.name
    if wanted in known or not known:
        return wanted
    return known[0]


def opened(trace: TraceQuestion | None) -> Trace | None:
    return trace.opened() if trace is not None else None
