"""How Weir stands to the cluster: the guardrails it keeps there, and its mode. For operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from django.db.models import Q, prefetch_related_objects
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from portal.audit.reading import may_audit
from portal.display.format import counted
from portal.streams.standing import standings
from portal.teams.access import is_admin, visible_workloads
from portal.teams.rights import Person
from portal.web.cycles.around import CauseLine, cause_of
from portal.web.cycles.views import TRIGGERS
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.lab.run_times import live_held
from portal.web.operations.drawing import last_hours
from portal.web.operations.health import changed_today, health_of
from portal.web.operations.hours import SPAN, hours_of
from portal.web.operations.mode import MEANING, choices, last_set, operated
from scheduling.models import (
    Action,
    Cluster,
    ClusterMode,
    Cycle,
    CycleRecord,
    Decision,
    ForecastOutcome,
    Guardrail,
    GuardrailState,
    Predictor,
    PredictorState,
    Workload,
)
from scheduling.models.credentials import is_kept
from scheduling.services.starts.accuracy import FEW, SCORED, WAS_TOLD, Share
from scheduling.services.worker.lanes import lanes_of

LOOKED_AT = 2000
"""Starts, the latest of 30 days."""
HELD_PCT, BEFORE_P90_PCT = 80, 90
"""What P10 to P90, and P90 alone, should hold."""
BETWEEN = "between P10 and P90"


@dataclass(frozen=True, slots=True)
class Model:
    """``pct`` is what held of ``of``, and should be ``target``; ``since`` is when it began to serve."""

    name: str
    note: str
    since: datetime | None
    share: Share
    means: str
    target: int

    @property
    def is_few(self) -> bool:
        return self.share.of < FEW

    @property
    def verdict(self) -> str:
        """ "too sure" or "too careful" where what was told is outside the interval of what came."""
        low, high = self.share.bounds
        if self.is_few:
            return "too few to say"
        return "too sure" if high < self.target else "too careful" if low > self.target else ""


def models_of(cluster: Cluster) -> list[Model]:
    """Three queries."""
    return [*_run_times(cluster), *_starts(cluster)]


def _run_times(cluster: Cluster) -> Iterator[Model]:
    serving = Predictor.objects.filter(cluster=cluster, status=PredictorState.SERVING)
    one = serving.defer("state", "weighs").first()
    if one is None:
        return
    runs = int(one.calibration.get("runs", 0))
    learned = Share(round(one.calibration.get("p10_p90_pct", 0) / 100 * runs), runs)
    note = f"v{one.version}, learned from {counted(one.runs, 'run')}"
    yield Model("Run times", note, one.served_from, learned, BETWEEN, HELD_PCT)
    count, hits = live_held(cluster)
    note = f"the last {counted(count, 'run')} that came due"
    yield Model("Drift of run times", note, None, Share(hits, count), BETWEEN, HELD_PCT)


def _starts(cluster: Cluster) -> Iterator[Model]:
    """By GPU class, as told at submission."""
    now = cluster.now()
    rows = ForecastOutcome.objects.filter(
        WAS_TOLD,
        workload__cluster=cluster,
        at_submission=True,
        started_at__gt=now - SCORED,
        started_at__lte=now,
    ).order_by("-started_at")
    by_class: dict[str, list[bool]] = {}
    columns = ("gpu_class__name", "told_at", "started_at", "p90_s")
    for name, told_at, started_at, p90_s in rows.values_list(*columns)[:LOOKED_AT]:
        by_class.setdefault(name or "any class", []).append(
            (started_at - told_at).total_seconds() <= p90_s
        )
    for name, came in sorted(by_class.items()):
        note = f"{counted(len(came), 'start')} in 30 days"
        share = Share(sum(came), len(came))
        yield Model(f"Starts, {name}", note, None, share, "before P90", BEFORE_P90_PCT)


LAST, EVICTED = 5, 5
DONE = {
    Action.EVICT: "evicted",
    Action.MOVE: "moved",
    Action.SHRINK: "shrunk",
    Action.ADMIT: "started",
    Action.GROW: "grown",
}
"""Acts, the first to be told first."""

Causes = tuple[Sequence[dict[str, Any]], int]
"""Those kept one by one, and how many beyond."""


@dataclass(frozen=True, slots=True)
class Recent:
    """One row: ``woken_by`` and ``line`` in words."""

    cycle: Cycle
    woken_by: str
    shrunk: int
    line: str


def recent(cluster: Cluster, user: Person) -> list[Recent]:
    """Newest first. Work that ``user`` may not see is counted, not named. Four queries."""
    mine = Cycle.objects.filter(cluster=cluster)
    evicted = mine.filter(evicted__gt=0, at__gte=cluster.now() - SPAN)
    either = Q(pk__in=mine.values("pk")[:LAST]) | Q(pk__in=evicted.values("pk")[:EVICTED])
    shown = list(mine.filter(either))
    keys = {one.pk for one in shown}
    causes, acts = _causes(keys), _acts(keys)
    seen = _visible_work(user, causes, acts)
    return [_row(one, causes.get(one.pk, ((), 0)), acts.get(one.pk, ()), seen) for one in shown]


def _row(
    cycle: Cycle, causes: Causes, acts: Sequence[Decision], seen: Mapping[int, Workload]
) -> Recent:
    shrunk = sum(act.action == Action.SHRINK for act in acts)
    return Recent(cycle, _woken_by(cycle, causes, seen), shrunk, _line(acts, seen))


def _visible_work(
    user: Person, causes: Mapping[int, Causes], acts: Mapping[int, Sequence[Decision]]
) -> dict[int, Workload]:
    """Of all the work that the rows are about, what ``user`` may see."""
    named: list[int | None] = [row.get("workload") for rows, _ in causes.values() for row in rows]
    for act in chain.from_iterable(acts.values()):
        named += (act.workload_id, act.for_workload_id)
    keys = {key for key in named if key}
    return {one.pk: one for one in visible_workloads(user).filter(pk__in=keys)}


def _causes(keys: set[int]) -> dict[int, Causes]:
    rows = CycleRecord.objects.filter(cycle__in=keys)
    columns = rows.values_list("cycle", "causes", "more_causes")
    return {key: (causes, more) for key, causes, more in columns}


def _acts(keys: set[int]) -> dict[int, list[Decision]]:
    order = list(DONE)
    found: dict[int, list[Decision]] = {}
    rows = Decision.objects.filter(cycle__in=keys, action__in=DONE).order_by("pk")
    for act in rows.only("cycle", "workload", "for_workload", "action"):
        found.setdefault(act.cycle_id, []).append(act)
    for acts in found.values():
        acts.sort(key=lambda act: order.index(Action(act.action)))
    return found


def _woken_by(cycle: Cycle, causes: Causes, seen: Mapping[int, Workload]) -> str:
    rows, more = causes
    if len(rows) + more > 1:
        return f"{len(rows) + more:,} changes"
    cause = cause_of(rows[0], seen) if rows else None
    return _cause(cause) if cause else TRIGGERS.get(cycle.trigger, cycle.trigger)


def _cause(cause: CauseLine) -> str:
    if cause.workload:
        return f"{cause.workload.name} {cause.words}"
    return f"node {cause.node} {cause.words}" if cause.node else f"{cause.policy} {cause.words}"


def _line(acts: Sequence[Decision], seen: Mapping[int, Workload]) -> str:
    """The act that weighs most, by name where it may be named, and how many others there were."""
    if not acts:
        return "No change"
    first = next((act for act in acts if act.workload_id in seen), None)
    if first is None:
        return f"{counted(len(acts), 'decision')} about work of other teams"
    winner = seen.get(first.for_workload_id or 0)
    whom = f" for {winner.name}" if winner else ""
    more = f", and {counted(len(acts) - 1, 'more decision')}" if len(acts) > 1 else ""
    return f"{seen[first.workload_id].name} {DONE[Action(first.action)]}{whom}{more}"


TONES = {
    GuardrailState.IN_STEP: ("ok", "finished"),
    GuardrailState.MISSING: ("warn", "pending"),
    GuardrailState.DRIFTED: ("warn", "pending"),
    GuardrailState.UNWANTED: ("neutral", "pending"),
    GuardrailState.REFUSED: ("err", "error"),
}
"""Colour and glyph of a badge."""


@dataclass(frozen=True)
class RailRow:
    rail: Guardrail
    tone: str
    glyph: str


@dataclass(frozen=True)
class RailsOfKind:
    """Objects of a kind: how many of how many stand as they should."""

    name: str
    in_step: int
    total: int


@page_view
def cluster(request: PersonRequest, cluster: str) -> HttpResponse:
    found = operated(request, cluster)
    prefetch_related_objects([found], "guardrails")
    rails = list(found.guardrails.all())
    lanes = lanes_of(found)
    hours = hours_of(found)
    cycles = recent(found, request.user)
    page = page_of(request, [rail for rail in rails if rail.standing != GuardrailState.IN_STEP])
    context = {
        "administers": is_admin(request.user),
        "cluster": found,
        "meaning": MEANING[ClusterMode(found.mode)],
        "where": _where(found),
        "modes": choices(found),
        "set": last_set(found),
        "health": health_of(found, lanes, cycles[0].cycle if cycles else None),
        "lanes": lanes,
        "streams": standings(),
        "hours": hours,
        "figure": None if hours.is_empty else last_hours(hours, found.display_time_zone),
        "cycles": cycles,
        "models": models_of(found),
        "changed": changed_today(found, request.user),
        "may_audit": may_audit(request.user),
        "every_mode": ClusterMode.choices,
        "kinds": _kinds(rails),
        "page": page,
        "rows": [RailRow(rail, *TONES[GuardrailState(rail.standing)]) for rail in page],
        "now": timezone.now(),
    }
    return render(request, "web/operations/cluster.html", context)


def _kinds(rails: list[Guardrail]) -> list[RailsOfKind]:
    total = Counter(rail.kind for rail in rails)
    in_step = Counter(rail.kind for rail in rails if rail.standing == GuardrailState.IN_STEP)
    return [RailsOfKind(name, in_step[name], total[name]) for name in sorted(total)]


def _where(cluster: Cluster) -> str:
    """How the cluster is reached, without anything that opens it."""
    if cluster.api_url:
        return cluster.api_url
    if cluster.kubeconfig:
        place = "a kubeconfig that is kept" if is_kept(cluster.kubeconfig) else cluster.kubeconfig
        return f"{cluster.context or 'the current context'} of {place}"
    return "the service account of Weir's pod"
