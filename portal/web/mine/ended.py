"""What of the person's own work ended since yesterday: what needs them first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import prefetch_related_objects

from portal.accounts.models import User
from portal.display.adding_up import Column, hours_column
from portal.selectors.costs import STEPS, Prices, cost_of, gpu_seconds
from portal.web.mine.now import own
from scheduling.models import Cluster, Eviction, GpuClass, Outcome, State, Transition, Workload
from scheduling.services.words import endings
from scheduling.services.workloads.kubectl import logs_of

SINCE = timedelta(hours=24)
MOST = 20
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
        """Why it failed, and what to do."""
        return " ".join(filter(None, (endings.sentence(self.work), endings.remedy(self.work))))

    @property
    def logs(self) -> str:
        return logs_of(self.work)

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
class Ended:
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


def ended(cluster: Cluster, user: User) -> Ended:
    """Seven queries."""
    since = cluster.now() - SINCE
    finished = (
        own(cluster, user)
        .filter(state=State.FINISHED, finished_at__gte=since)
        .select_related("queue", "gpu_class", "cluster")
        .order_by("-finished_at", "-id")
    )
    rows = [_finished(work) for work in finished] + _evicted(cluster, user, since)
    rows.sort(key=lambda row: (RANK.get(row.state, LAST), -row.at.timestamp(), row.work.pk))
    shown = rows[:MOST]
    prefetch_related_objects([row.work for row in shown], STEPS)
    priced = _with_costs(shown, Prices.of(cluster.gpu_classes.all())) if shown else []
    return Ended(since, _with_words(priced), len(rows))


def _with_costs(rows: Sequence[Ending], prices: Prices) -> list[Ending]:
    costs = [cost_of(row.work, row.at, prices) for row in rows]
    return [
        replace(row, cost=cost.amount if cost and cost.gpu_hours else None)
        for row, cost in zip(rows, costs, strict=True)
    ]


def _finished(work: Workload) -> Ending:
    at = work.finished_at or work.submitted_at
    return Ending(work, at, work.outcome or State.FINISHED, work.gpu_class, None)


def _evicted(cluster: Cluster, user: User, since: datetime) -> list[Ending]:
    """The last eviction of each that has not finished."""
    acts = (
        Eviction.objects.filter(
            workload__cluster=cluster, workload__user=user.get_username(), at__gte=since
        )
        .exclude(workload__state=State.FINISHED)
        .select_related(
            *("workload__queue", "workload__gpu_class", "workload__cluster", "gpu_class"),
            *("for_workload__queue", "for_queue"),
        )
    )
    last: dict[int, Eviction] = {}
    for act in acts:
        last.setdefault(act.workload_id, act)
    return [Ending(act.workload, act.at, "evicted", act.gpu_class, act) for act in last.values()]


def _with_words(rows: Sequence[Ending]) -> list[Ending]:
    """The sentence of what failed stands at its last step."""
    failed = [row.work.pk for row in rows if row.state == Outcome.FAILED]
    steps = Transition.objects.filter(workload__in=failed, to_state=State.FINISHED)
    said = {step.workload_id: step for step in steps.select_related("workload__queue") if failed}
    return [replace(row, told_by=row.told_by or said.get(row.work.pk)) for row in rows]
