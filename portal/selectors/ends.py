"""When work would end, class by class, and what its run would cost there: starts and learned run times put
together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import hypot
from typing import Any

from portal.display.format import counted
from portal.selectors.costs import Cost, amount_of
from scheduling.models import MILLI, ClassOrder, GpuClass, Prediction, State, Workload
from scheduling.services import run_times
from scheduling.services.run_times import ExpectedRunTime, HeldBack
from scheduling.services.starts.tell import predicted_start as said_now

Span = tuple[datetime, datetime]
"""P50 and P90."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Work that waits, held against a start now on another class: when either would end. ``evidence`` says
    how it is known, or why it is not; ``waits`` is None where no start is forecast."""

    gpu_class: str
    ends: Span | None
    waits: Span | None
    waits_ends: Span | None
    evidence: str

    @property
    def is_sooner(self) -> bool | None:
        """Whether the start now ends first, by the P50; None where either end is unknown."""
        if self.ends is None or self.waits_ends is None:
            return None
        return self.ends[0] < self.waits_ends[0]


@dataclass(frozen=True, slots=True)
class ClassWait:
    """Work that may use ``slower`` too waits for a faster class; starts there waited ``wait_s`` of late."""

    slower: str
    back: HeldBack
    wait_s: float


def held_back(work: Workload, now: datetime) -> list[ClassWait]:
    """By the policy of its cluster and what was learned of it; as its author prefers the slower classes."""
    said: Prediction | None = getattr(work, "prediction", None)
    if said is None or work.state != State.PENDING or work.cluster.class_order != ClassOrder.WAITS:
        return []
    waits = run_times.held_back(said.by_class, work.submitted_at)
    return [
        ClassWait(name, waits[name], said.by_class[waits[name].faster]["wait_s"])
        for name, _ in in_order(said.by_class)
        if name in waits and now < waits[name].until
    ]


def end_after(begin: Span, p50_s: float, p90_s: float) -> Span:
    """The medians one after the other, and the doubts of start and run added as those of things that have
    nothing to do with each other."""
    p50 = begin[0] + timedelta(seconds=p50_s)
    doubt_s = hypot((begin[1] - begin[0]).total_seconds(), p90_s - p50_s)
    return p50, p50 + timedelta(seconds=doubt_s)


def question_elsewhere(work: Workload, gpu_classes: Sequence[str]) -> dict[str, Any] | None:
    """The question whose answer ``elsewhere`` needs; None where there is nothing to compare."""
    if not gpu_classes:
        return None
    names = list(dict.fromkeys([*work.gpu_classes, *gpu_classes]))
    return run_times.question_of(cluster=work.cluster, work=work, gpu_classes=names)


def elsewhere(
    work: Workload, gpu_classes: Sequence[str], runs: Mapping[str, ExpectedRunTime], now: datetime
) -> dict[str, Elsewhere]:
    """By class, what a start now on each of ``gpu_classes`` would mean for the end of ``work``, which waits
    and would run as long as ``runs`` says of each class; empty where nothing is known."""
    if not runs:
        return {}
    waits, there = _forecast(work, now)
    waiting = runs.get(there)
    waits_ends = end_after(waits, waiting.p50_s, waiting.p90_s) if waits and waiting else None
    return {
        name: Elsewhere(
            name, _end(runs.get(name), now), waits, waits_ends, evidence(runs.get(name))
        )
        for name in gpu_classes
    }


def _end(one: ExpectedRunTime | None, now: datetime) -> Span | None:
    return end_after((now, now), one.p50_s, one.p90_s) if one and one.compares else None


def _forecast(work: Workload, now: datetime) -> tuple[Span | None, str]:
    """When it is told to start, and on which class; the first that it wishes where none is told."""
    row = getattr(work, "start_forecast", None)
    first = next(iter(work.gpu_classes), "")
    start = said_now(row, now)
    if row is None or start.p90 is None:
        return None, first
    return (start.p50 or now, start.p90), row.gpu_class.name if row.gpu_class else first


def evidence(one: ExpectedRunTime | None) -> str:
    """How it is known how fast it is there."""
    if one is None or not one.compares:
        return "nothing has run on both, so nobody knows how long it would take there"
    if one.pace is None:
        return f"by {counted(one.runs, 'run')} like it"
    pace = one.pace
    return (
        f"{pace.ratio:.2g} times as fast as on {pace.against}, as {counted(pace.runs, 'run')} under"
        f" {counted(pace.groups, 'name')} on both show"
    )


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """Of the whole run at its P50, on one class."""

    gpu_class: str
    amount: Decimal


def expected_costs(
    work: Workload, classes: Mapping[str, GpuClass], now: datetime, so_far: Cost | None
) -> list[ExpectedCost]:
    """What the run is expected to cost, with what it has cost ``so_far``: of one that waits on
    each class whose pace is known, in its order of preference. Empty where nothing was learned."""
    said: Prediction | None = getattr(work, "prediction", None)
    if said is None or work.state == State.FINISHED:
        return []
    if not work.is_waiting:
        own = classes.get(work.gpu_class.name) if work.gpu_class else None
        rest_s = max(
            0.0, said.p50_s - (now - max(said.at, work.started_at or said.at)).total_seconds()
        )
        return [_cost(work, own, rest_s, so_far)] if own else []
    runs = {name: of["p50_s"] for name, of in in_order(said.by_class)}
    runs = runs or dict.fromkeys(work.gpu_classes[:1], said.p50_s)
    return [_cost(work, classes[name], s, so_far) for name, s in runs.items() if name in classes]


def in_order(by_class: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """As its author prefers them, whatever order the database keeps keys in."""
    return sorted(by_class.items(), key=lambda pair: pair[1].get("place", 0))


def _cost(work: Workload, gpu_class: GpuClass, rest_s: float, so_far: Cost | None) -> ExpectedCost:
    gpus = (work.allocated_gpus or work.requested_gpus) / MILLI
    amount = amount_of(gpu_class, gpus * rest_s) + (so_far.amount if so_far else 0)
    return ExpectedCost(gpu_class.name, amount)
