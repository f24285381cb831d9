"""Is the engine of a cluster healthy: one sentence, what to look at, and the figures behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Count, F, Window
from django.utils import timezone

from portal.audit.kinds import kind_of
from portal.audit.reading import may_audit, visible_entries
from portal.display.format import counted, duration, when
from portal.selectors.losses import lost_in
from portal.teams.rights import Person
from portal.web.cycles.around import Way, way
from portal.web.frame.context import stale_after_s
from portal.web.operations.bounds import SLOW_MS, Bound, bounds_of, near_of
from portal.web.operations.processes import Processes, processes_of
from scheduling.models import Cluster, ClusterMode, Cycle, CycleRecord, Eviction, GuardrailState
from scheduling.models.workloads import WAITING
from scheduling.services.cycle.run import LAG_S
from scheduling.services.starts.tell import predicted_start
from scheduling.services.worker.lanes import LaneNow

DAY = timedelta(hours=24)
WRITES, CHANGES, FIRST = 8, 8, 3
COLUMNS = ("took_ms", "admitted", "evicted", "slowest_ms", "slowest_at")


@dataclass(frozen=True, slots=True)
class WriteRow:
    """A write as the API server took it; ``code`` is 0 where it accepted."""

    at: datetime
    what: str
    cycle: int
    """Number of the one that it belongs to."""
    code: int
    message: str
    ms: float


@dataclass(frozen=True)
class Health:
    faults: Sequence[str]
    """What keeps it from being healthy, worst first."""
    looks: Sequence[str]
    """What to look at although it is."""
    cycle_ms: float
    half_ms: float
    most_ms: float
    cycles: int
    started: int
    evicted: int
    lost_gpu_s: float
    writes: Sequence[WriteRow]
    written: int
    refused: int
    plan_age_s: float | None
    pausing: str
    planned_s: float | None
    """From a change to the plan that answers it, and to its writes: P90 of the cycles that acted; None where
    no change was answered."""
    acted_s: float | None
    processes: Processes
    bounds: Sequence[Bound]

    @property
    def near(self) -> int:
        """How many guardrails are near their bound."""
        return len(near_of(self.bounds))

    @property
    def healthy(self) -> bool:
        return not self.faults


def health_of(cluster: Cluster, lanes: Sequence[LaneNow], last: Cycle | None) -> Health:
    """Of the last day in the cluster's own time; ``last`` is its newest cycle."""
    since = cluster.now() - DAY
    cycles = Cycle.objects.filter(cluster=cluster, at__gte=since)
    rows = list(cycles.order_by().values_list(*COLUMNS))
    took = sorted(row[0] for row in rows if row[0] > 0)
    _, lost = lost_in(Eviction.objects.filter(workload__cluster=cluster, at__gte=since))
    records = _records(cluster, since)
    writes = list(_writes(records))
    ways = list(_ways(cluster, records))
    refused = [write for write in writes if write.code]
    now = timezone.now()
    age = (now - cluster.planned_at).total_seconds() if cluster.planned_at else None
    processes = processes_of(cluster, lanes, now)
    slow = (ms for *_, ms, at in rows if ms is not None and at >= since)
    bounds = bounds_of(cluster, max([0, *took[-1:], *slow]), processes.lag_s)
    return Health(
        faults=[*_faults(cluster, age, processes), *processes.faults],
        looks=list(_looks(cluster, took, refused, bounds)),
        processes=processes,
        bounds=bounds,
        cycle_ms=last.took_ms if last else 0,
        half_ms=_share(took, 0.5),
        most_ms=_share(took, 0.99),
        cycles=len(rows),
        started=sum(row[1] for row in rows),
        evicted=sum(row[2] for row in rows),
        lost_gpu_s=lost,
        writes=[*refused[:WRITES], *(w for w in writes if not w.code)][:WRITES],
        written=len(writes),
        refused=len(refused),
        plan_age_s=age,
        pausing=_pausing(cluster),
        planned_s=_share(sorted(one.planned_s for one in ways), 0.9) if ways else None,
        acted_s=_share(sorted(one.acted_s for one in ways), 0.9) if ways else None,
    )


def _share(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0


def _faults(cluster: Cluster, age: float | None, processes: Processes) -> Iterator[str]:
    if cluster.mode == ClusterMode.PAUSED:
        yield "it is paused: nothing is planned"
    elif age is None:
        yield "it has not planned yet"
    elif age > stale_after_s(cluster):
        yield f"the last plan is {duration(age)} old, and one is due every {cluster.cycle_interval_s:g} s"
    if processes.lag_s is not None and processes.lag_s > LAG_S:
        yield f"its mirror has been out of touch with the cluster for {duration(processes.lag_s)}"


def _looks(
    cluster: Cluster, took: Sequence[float], refused: Sequence[WriteRow], bounds: Sequence[Bound]
) -> Iterator[str]:
    for bound in near_of(bounds):
        side = "past" if bound.used > bound.most else "near"
        yield f"{bound.name[0].lower()}{bound.name[1:]}: {bound.words}, {side} its bound"
    if refused:
        yield f"{counted(len(refused), 'write')} of the last day refused by the API server"
    if rails := sum(rail.standing != GuardrailState.IN_STEP for rail in cluster.guardrails.all()):
        yield f"{counted(rails, 'guardrail')} out of step"
    slow = sum(ms > SLOW_MS for ms in took)
    if slow:
        yield f"{counted(slow, 'cycle')} that changed something and took longer than {SLOW_MS / 1000:g} s"
    down = cluster.nodes.filter(ready=False).count()
    if down:
        yield f"{counted(down, 'node')} not ready"


class _Record(NamedTuple):
    at: datetime
    number: int
    took_ms: float
    causes: list[Any]
    phases: list[Any]
    writes: list[dict[str, Any]]


def _records(cluster: Cluster, since: datetime) -> list[_Record]:
    """Of the cycles that acted, newest first. One query."""
    records = CycleRecord.objects.filter(cycle__cluster=cluster, cycle__at__gte=since)
    of_cycle = ("cycle__at", "cycle__number", "cycle__took_ms")
    rows = records.order_by("-cycle__at").values_list(*of_cycle, "causes", "phases", "writes")
    return [_Record(*row) for row in rows]


def _ways(cluster: Cluster, records: Iterable[_Record]) -> Iterator[Way]:
    for one in records:
        found = way(one.at, one.took_ms, one.causes, one.phases, cluster.clock_speed)
        if found:
            yield found


def _writes(records: Iterable[_Record]) -> Iterator[WriteRow]:
    for one in records:
        for write in one.writes:
            yield _row(one.at, one.number, write)


def _row(at: datetime, number: int, write: dict[str, Any]) -> WriteRow:
    return WriteRow(
        at=at,
        what=f"{write.get('purpose', '')} {write.get('kind', '')} {write.get('name', '')}".strip(),
        cycle=number,
        code=write.get("code") or 0,
        message=write.get("message", ""),
        ms=write.get("ms") or 0,
    )


def _pausing(cluster: Cluster) -> str:
    """What would be held back from now on: the next starts by name, with when they are expected."""
    waiting = cluster.workloads.filter(state__in=WAITING, held=False).exclude(queue=None)
    soonest = F("start_forecast__p50_at").asc(nulls_last=True)
    rows = waiting.order_by(soonest, "position", "submitted_at").annotate(all=Window(Count("pk")))
    first = list(rows.select_related("start_forecast__gpu_class")[:FIRST])
    if not first:
        return "nothing waits, so nothing would be held back; what runs is not touched"
    zone, now = cluster.display_time_zone, cluster.now()
    names = []
    for work in first:
        start = predicted_start(getattr(work, "start_forecast", None), now)
        names.append(
            f"{work.name} (expected {when(start.p50, now, zone)})" if start.p50 else work.name
        )
    rest = first[0].all - len(names)
    more = f" and {rest:,} more" if rest else ""
    return f"{', '.join(names)}{more} would not be started; what runs is not touched"


def changed_today(cluster: Cluster, user: Person) -> list[tuple[Any, str]]:
    """(entry, words) of what people changed on the cluster within a day, newest first."""
    if not may_audit(user):
        return []
    entries = visible_entries(user).filter(
        cluster=cluster.name, refused=False, at__gte=timezone.now() - DAY
    )
    quiet = entries.exclude(kind__startswith="work.").exclude(kind__startswith="sign_in.")
    return [(entry, kind_of(entry.kind).words) for entry in quiet[:CHANGES]]
