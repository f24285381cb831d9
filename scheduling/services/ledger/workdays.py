"""What work held and how it ended, by queue, class, user and type: from single workloads, rolled up by day.

Whole days that are rolled up and the hours of the present one are read as such, the edges of a range and
what is newer from single workloads, so a range of any length is exact and costs what its days cost. The
present day is rolled up as far as its hours are over, and again for ``LATE`` after its end: work may be seen
late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import (
    Count,
    ExpressionWrapper,
    F,
    FloatField,
    Min,
    Q,
    QuerySet,
    Subquery,
    Sum,
)

from scheduling.models import Cluster, Eviction, GpuUse, Outcome, Transition, WorkDay, Workload
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.rollup import floor
from scheduling.services.ledger.singles import (
    FIGURES,
    OF_WORK,
    Kin,
    Window,
    Work,
    Worked,
    WorkFilter,
    between,
    held_between,
    join,
    steps_of,
    used_between,
    within,
)
from scheduling.services.tables.instants import Epoch
from scheduling.services.tables.passes import keep, last_of, mark_of, places_of

DAY = timedelta(days=1)
LATE = timedelta(days=2)
BEHIND_WALL = timedelta(minutes=10)
"""What happened is written by then, as a rule; what comes later, the next pass finds."""
MOST_DAYS = 60
"""With work; of a past that nobody rolled up yet, so many in one pass."""
TASK = "roll up days"
UP_TO_S: Final = ExpressionWrapper(Epoch("start") + F("seconds"), FloatField())


def read(cluster: Cluster, chosen: WorkFilter, start: datetime, end: datetime) -> Worked:
    """What happened in [start, end): days that are rolled up, and single workloads at the edges."""
    return _read(cluster, chosen, start, end, between)


def read_held(
    cluster: Cluster, chosen: WorkFilter, start: datetime, end: datetime
) -> dict[Kin, float]:
    """GPU-seconds held, alone: three queries."""
    found = _read(cluster, chosen, start, end, held_between)
    return {kin: work.held_gpu_s for kin, work in found.items()}


def read_used(cluster: Cluster, chosen: WorkFilter, start: datetime, end: datetime) -> Worked:
    """Held, and what was measured of that, alone: four queries."""
    return _read(cluster, chosen, start, end, used_between)


def _read(
    cluster: Cluster,
    chosen: WorkFilter,
    start: datetime,
    end: datetime,
    single: Callable[..., Worked],
) -> Worked:
    known = rolled_to(cluster)
    first, last = _rolled_part(known, start, end)
    if first >= last:
        return single(chosen, (start, end))
    found, known_since = _rolled(cluster, chosen, first, last)
    if found and known_since != known:
        # A pass came between the two: its hours would count twice.
        return _read(cluster, chosen, start, end, single)
    edges = [(begin, stop) for begin, stop in ((start, first), (last, end)) if begin < stop]
    join(found, single(chosen, *edges).items())
    return found


def _rolled_part(
    known: datetime | None, start: datetime, end: datetime
) -> tuple[datetime, datetime]:
    """What of [start, end) rows tell, as they reach up to ``known``: whole days, and the hours of the newest
    where it is in there as far as it is rolled up."""
    first = floor(start, Resolution.DAY)
    first = first if first == start else first + DAY
    if known is None:
        return first, first
    return first, known if known <= end else floor(end, Resolution.DAY)


def rolled_to(cluster: Cluster) -> datetime | None:
    """Up to when days are rolled up, without a gap; None before the first."""
    up_to_s = _newest(cluster).values_list(UP_TO_S, flat=True).first()
    return None if up_to_s is None else datetime.fromtimestamp(up_to_s, UTC)


def _newest(cluster: Cluster) -> QuerySet[WorkDay]:
    return WorkDay.objects.filter(queue__cluster=cluster).order_by("-start")


def _rolled(
    cluster: Cluster, chosen: WorkFilter, first: datetime, last: datetime
) -> tuple[Worked, datetime | None]:
    """And up to when days were rolled up as these rows were read; None where there are none. One query."""
    rows = WorkDay.objects.filter(chosen.condition(), start__gte=first, start__lt=last).order_by()
    sums = {name: Sum(name) for name in FIGURES}
    known = Subquery(_newest(cluster).values(up_to_s=UP_TO_S)[:1])
    found: Worked = {}
    up_to_s = None
    for row in rows.values(*OF_WORK).annotate(**sums, up_to_s=known):
        up_to_s = row["up_to_s"]
        kin = Kin(*(row[name] for name in OF_WORK))
        found[kin] = Work(**{name: row[name] for name in FIGURES})
    return found, None if up_to_s is None else datetime.fromtimestamp(up_to_s, UTC)


def roll_days(cluster: Cluster, *, since: datetime | None = None) -> int:
    """Bring the days that are over, and the hours of this one, into line with the workloads of ``cluster``;
    how many rows changed.

    From ``since`` on; by default those that are missing, and of the last ones those of which something came
    since the last pass. Running it again changes nothing.
    """
    chosen = WorkFilter.all_of(cluster)
    first = since or _due_from(cluster)
    if first is None:
        return 0
    before = {} if since else last_of(cluster, TASK).mark
    marks: dict[str, list[Any]] = {}
    changed, busy = 0, 0
    last = _over(cluster)
    for day, end in _days(floor(first, Resolution.DAY), last):
        if day + DAY + LATE >= last:  # else nobody looks at it again
            name = day.isoformat()
            marks[name] = [floor(last, Resolution.DAY).isoformat(), end.isoformat()]
            marks[name] += _mark(chosen, (day, end))
            if before.get(name) == marks[name]:
                continue
        worked = between(chosen, (day, end))
        changed += _roll(cluster, (day, end), worked)
        busy += bool(worked)
        if busy >= MOST_DAYS:
            break
    if marks != before:
        keep(cluster, TASK, marks)
    return changed


def _over(cluster: Cluster) -> datetime:
    """The end of the last hour of which all is written."""
    return floor(cluster.now() - BEHIND_WALL * max(1.0, cluster.clock_speed), Resolution.HOUR)


def _days(first: datetime, last: datetime) -> Iterator[Window]:
    """The last one as far as it is over."""
    while first < last:
        yield first, min(first + DAY, last)
        first += DAY


def _mark(chosen: WorkFilter, window: Window) -> list[list[Any]]:
    """Of what ``between`` reads; who a user is, or of what type work, is looked at anew with the next day."""
    began, ended = within("first_started_at", [window]), within("finished_at", [window])
    works = Workload.objects.filter(chosen.people(), began | ended)
    used = GpuUse.objects.filter(chosen.people("workload__"), within("start", [window]))
    evicted = Eviction.objects.filter(chosen.people("workload__"), within("at", [window]))
    outcomes = {name: Count("pk", filter=Q(outcome=name)) for name in Outcome.values}
    steps = steps_of(chosen, [window])
    return [
        mark_of(steps, ("gpus", "gpu_class_id"), places=places_of("workload__")),
        mark_of(works, ("used_gpu_s",), began=Count("pk", filter=began), **outcomes),
        mark_of(used, ("gpu_s", "active_gpu_s"), places=places_of("workload__")),
        mark_of(evicted, ("lost_gpu_s",), places=places_of("workload__")),
    ]  # fmt: skip


def _due_from(cluster: Cluster) -> datetime | None:
    done = rolled_to(cluster)
    if done is not None:
        return min(done, cluster.now()) - LATE
    rows = Transition.objects.filter(workload__cluster=cluster)
    begin: datetime | None = rows.aggregate(at=Min("at"))["at"]
    return begin


@transaction.atomic
def _roll(cluster: Cluster, window: Window, worked: Worked) -> int:
    """The rows of one day, or of its first hours, as ``worked`` has them; those that nothing speaks for any
    more go."""
    day, seconds = window[0], int((window[1] - window[0]).total_seconds())
    known = {
        Kin(row.queue_id, row.gpu_class_id, row.user, row.type): row
        for row in WorkDay.objects.filter(queue__cluster=cluster, start=day)
    }
    gone = [row.pk for kin, row in known.items() if kin not in worked]
    changed = [
        WorkDay(
            queue_id=kin.queue, gpu_class_id=kin.gpu_class, user=kin.user, type=kin.type, start=day,
            seconds=seconds, **_columns(work),
        )
        for kin, work in sorted(worked.items())
        if kin not in known or known[kin].seconds != seconds or not _is_same(known[kin], work)
    ]  # fmt: skip
    WorkDay.objects.filter(pk__in=gone).delete()
    WorkDay.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["queue", "gpu_class", "user", "type", "start"],
        update_fields=("seconds", *FIGURES),
        batch_size=200,
    )
    return len(gone) + len(changed)


def _columns(work: Work) -> dict[str, Any]:
    return {name: getattr(work, name) for name in FIGURES}


def _is_same(row: WorkDay, work: Work) -> bool:
    return all(getattr(row, name) == getattr(work, name) for name in FIGURES)
