"""What of the person's own work ended since yesterday: what needs them first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import prefetch_related_objects

from portal.accounts.models import User
from portal.display.adding_up import Column, hours_column
from portal.selectors.costs import STEPS, Prices, cost_of, gpu_seconds
from portal.web.mine.active import own
from scheduling.models import Cluster, Eviction, GpuClass, Outcome, State, Transition, Workload
from scheduling.services.words import endings

SINCE = timedelta(hours=24)
MOST = 10
RANK = {Outcome.FAILED: 0, "evicted": 1}
LAST = 2


@dataclass(frozen=True, slots=True)
class Ending:
    """A workload that finished, or was evicted and has not finished. Each stands once."""

    work: Workload
    at: datetime
    state: str
    """What its badge says."""
    gpu_class: GpuClass | None
    told_by: Transition | Eviction | None
    """Whose sentence says what happened."""
    cost: Decimal | None = None

    @property
    def needs_words(self) -> bool:
        """Whether there is more to say than that it ended."""
        return self.state in RANK

    @property
    def why(self) -> str:
        """Why it failed."""
        return endings.sentence(self.work)

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return endings.remedy(self.work)

    @property
    def gpu_hours_s(self) -> float:
        """GPU-seconds of all its runs, in whole GPUs."""
        return gpu_seconds(self.work, self.at)

    @property
    def ran_s(self) -> float | None:
        """Length of the last run."""
        work = self.work
        if work.started_at is None or self.state == "evicted" or work.finished_at is None:
            return None
        return max(0.0, (work.finished_at - work.started_at).total_seconds())


@dataclass(frozen=True, slots=True)
class EndedWork:
    since: datetime
    rows: Sequence[Ending]
    count: int

    @property
    def more(self) -> int:
        return self.count - len(self.rows)

    @property
    def failed(self) -> list[Ending]:
        return [row for row in self.rows if row.state == Outcome.FAILED]

    @property
    def lines(self) -> list[tuple[Ending, str]]:
        """Each with its GPU-hours as they are shown: they add up to ``hours_shown``."""
        return list(zip(self.rows, self._hours.parts, strict=True))

    @property
    def hours_shown(self) -> str:
        return self._hours.total

    @property
    def _hours(self) -> Column:
        hours = [row.gpu_hours_s / 3600 for row in self.rows]
        return hours_column(hours, sum(hours))

    @property
    def cost(self) -> Decimal:
        return sum((row.cost for row in self.rows if row.cost is not None), Decimal(0))


def ended(cluster: Cluster, user: User) -> EndedWork:
    """Seven queries at most; of what is not shown nothing but how it ended and when."""
    since = cluster.now() - SINCE
    found = [*_finished(cluster, user, since), *_evicted(cluster, user, since)]
    found.sort(key=lambda one: (RANK.get(one.state, LAST), -one.at.timestamp(), one.work))
    priced = _with_costs(_read(found[:MOST]), Prices.of(cluster.gpu_classes.all())) if found else []
    return EndedWork(since, _with_words(priced), len(found))


def _with_costs(rows: Sequence[Ending], prices: Prices) -> list[Ending]:
    costs = [cost_of(row.work, row.at, prices) for row in rows]
    return [
        replace(row, cost=cost.amount if cost and cost.gpu_hours else None)
        for row, cost in zip(rows, costs, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _EndOfWork:
    """Ids of a workload and, where it was evicted, of the act."""

    work: int
    at: datetime
    state: str
    act: int | None = None


def _finished(cluster: Cluster, user: User, since: datetime) -> list[_EndOfWork]:
    rows = own(cluster, user).filter(state=State.FINISHED, finished_at__gte=since).order_by()
    return [
        _EndOfWork(pk, at or submitted, outcome or State.FINISHED)
        for pk, at, submitted, outcome in rows.values_list(
            "pk", "finished_at", "submitted_at", "outcome"
        )
    ]


def _evicted(cluster: Cluster, user: User, since: datetime) -> list[_EndOfWork]:
    """The last eviction of each that has not finished."""
    acts = Eviction.objects.filter(
        workload__cluster=cluster, workload__user=user.get_username(), at__gte=since
    ).exclude(workload__state=State.FINISHED)
    last: dict[int, _EndOfWork] = {}
    for act, work, at in acts.values_list("pk", "workload_id", "at"):
        last.setdefault(work, _EndOfWork(work, at, "evicted", act))
    return list(last.values())


def _read(found: Sequence[_EndOfWork]) -> list[Ending]:
    """What is shown of each."""
    acts = Eviction.objects.select_related(
        *("workload__queue", "workload__gpu_class", "workload__cluster", "gpu_class"),
        *("for_workload__queue", "for_queue"),
    ).in_bulk([one.act for one in found if one.act is not None])
    works = Workload.objects.select_related("queue", "gpu_class", "cluster").in_bulk(
        [one.work for one in found if one.act is None]
    )
    rows = [_ending(one, works, acts) for one in found]
    prefetch_related_objects([row.work for row in rows], STEPS)
    return rows


def _ending(
    found: _EndOfWork, works: Mapping[int, Workload], acts: Mapping[int, Eviction]
) -> Ending:
    if found.act is not None:
        act = acts[found.act]
        return Ending(act.workload, found.at, found.state, act.gpu_class, act)
    work = works[found.work]
    return Ending(work, found.at, found.state, work.gpu_class, None)


def _with_words(rows: Sequence[Ending]) -> list[Ending]:
    """The sentence of what failed stands at its last step."""
    failed = [row.work.pk for row in rows if row.state == Outcome.FAILED]
    steps = Transition.objects.filter(workload__in=failed, to_state=State.FINISHED)
    said = {step.workload_id: step for step in steps.select_related("workload__queue") if failed}
    return [replace(row, told_by=row.told_by or said.get(row.work.pk)) for row in rows]
