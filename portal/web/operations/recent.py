"""The cycles that an operator reads first: the last ones, and those that evicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.db.models import Q

from portal.display.format import counted
from portal.teams.access import visible_workloads
from portal.teams.rights import Person
from portal.web.cycles.around import Cause, cause_of
from portal.web.cycles.views import TRIGGERS
from portal.web.operations.hours import SPAN
from scheduling.models import Action, Cluster, Cycle, CycleRecord, Decision, Workload

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
    seen = _seen(user, causes, acts)
    return [_row(one, causes.get(one.pk, ((), 0)), acts.get(one.pk, ()), seen) for one in shown]


def _row(
    cycle: Cycle, causes: Causes, acts: Sequence[Decision], seen: Mapping[int, Workload]
) -> Recent:
    shrunk = sum(act.action == Action.SHRINK for act in acts)
    return Recent(cycle, _woken_by(cycle, causes, seen), shrunk, _line(acts, seen))


def _seen(
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


def _cause(cause: Cause) -> str:
    if cause.workload:
        return f"{cause.workload.name} {cause.words}"
    return f"node {cause.node} {cause.words}" if cause.node else f"{cause.policy} {cause.words}"


def _line(acts: Sequence[Decision], seen: Mapping[int, Workload]) -> str:
    """The act that weighs most, by name where it may be named, and how many others there were."""
    if not acts:
        return "No change"
    told = next((act for act in acts if act.workload_id in seen), None)
    if told is None:
        return f"{counted(len(acts), 'decision')} about work of other teams"
    winner = seen.get(told.for_workload_id or 0)
    whom = f" for {winner.name}" if winner else ""
    more = f", and {counted(len(acts) - 1, 'more decision')}" if len(acts) > 1 else ""
    return f"{seen[told.workload_id].name} {DONE[Action(told.action)]}{whom}{more}"
