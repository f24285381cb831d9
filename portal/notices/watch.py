"""What is told of what has not happened yet: work that is about to start, or is past its forecast, and hours
that run out. Nothing of it is an event, so each look asks what holds now; a notice's source tells it once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField, Exists, F, FloatField, Func, Max, OuterRef, Q, Value
from django.db.models.functions import Cast, Concat
from django.db.models.sql.compiler import SQLCompiler
from django.urls import reverse

from portal.accounts.models import User
from portal.display.format import duration, hours, when
from portal.notices.models import Kind, Notice, Preference, When
from portal.notices.outbox import tell
from portal.teams.models import Membership
from scheduling.models import Cluster, ForecastOutcome, Quota, StartForecast, ToldStart, Workload
from scheduling.models.workloads import WAITING
from scheduling.services.queues.entitlements import month, used_gpu_hours
from scheduling.services.starts.accuracy import WAS_TOLD
from scheduling.services.starts.tell import predicted_start

SOON = timedelta(minutes=15)
"""So long before its median; what has waited no longer than that is seen starting."""
LATE = "late "
"""What the source of such a notice begins with, before the workload's key."""
LATELY = timedelta(hours=1)
"""What was lost longer ago is no news."""
AT_ONCE = 500
"""Notices that one look writes of a cluster."""
SHARES = (100, 80)
"""Per cent of a month's GPU-hours that are told, the highest first: past both, one is told."""


def look_all() -> None:
    for cluster in Cluster.objects.all():
        look(cluster)


@transaction.atomic
def look(cluster: Cluster) -> None:
    """Tell what is about to start, what lost the start that it was told, and what waits past its first."""
    now = cluster.now()
    people = _wanting(Kind.SOON)
    for forecast in _soon(cluster, people, now):
        _tell_soon(people[forecast.workload.user], forecast, now)
    people = _wanting(Kind.MOVED)
    for move in _moved(cluster, people, now):
        _tell_moved(people[move.workload.user], move)
    people = _wanting(Kind.LATE)
    for outcome in _late(cluster, people, now):
        _tell_late(people[outcome.workload.user], outcome, now)


def _wanting(kind: Kind) -> dict[str, User]:
    """Names of those who are told of that kind at all: nobody else's work is looked at each time for
    nothing."""
    off = Preference.objects.filter(kind=kind, when=When.OFF)
    users = User.objects.filter(is_active=True).exclude(pk__in=off.values("user"))
    return {user.get_username(): user for user in users}


def _soon(cluster: Cluster, people: Iterable[str], now: datetime) -> list[StartForecast]:
    """Those not told of in this wait, each with ``since`` when it began to wait."""
    waits = Q(workload__transitions__to_state__in=WAITING)
    rows = StartForecast.objects.filter(
        workload__cluster=cluster,
        workload__state__in=WAITING,
        workload__user__in=list(people),
        workload__submitted_at__lt=now - SOON,
        p50_at__lte=now + SOON,
        p90_at__gt=now,
    ).annotate(since=Max("workload__transitions__at", filter=waits))
    found = [
        row
        for row in rows.select_related("workload__cluster").order_by("p50_at")[:AT_ONCE]
        if _since(row) < now - SOON
    ]
    sources = _sources_with_notice(_soon_source(row) for row in found)
    return [row for row in found if _soon_source(row) not in sources]


def _sources_with_notice(sources: Iterable[str]) -> set[str]:
    rows = Notice.objects.filter(source__in=list(sources))
    return set(rows.values_list("source", flat=True))


def _since(forecast: StartForecast) -> datetime:
    since: datetime | None = getattr(forecast, "since", None)
    return since or forecast.workload.submitted_at


def _soon_source(forecast: StartForecast) -> str:
    return f"soon {forecast.workload_id} {_since(forecast):%Y%m%d%H%M%S}"


def _moved(cluster: Cluster, people: Iterable[str], now: datetime) -> list[ToldStart]:
    """Of what waits still, once each, the newest that holds no longer."""
    rows = ToldStart.objects.filter(
        breaks=True, at__gt=now - LATELY, workload__cluster=cluster,
        workload__state__in=WAITING, workload__user__in=list(people),
    )  # fmt: skip
    found = list(rows.select_related("workload__cluster").order_by("-at", "-pk")[:AT_ONCE])
    sources = _sources_with_notice(_moved_source(row) for row in found)
    return [row for row in found if _moved_source(row) not in sources]


def _moved_source(row: ToldStart) -> str:
    return f"moved {row.pk}"


def _tell_moved(user: User, row: ToldStart) -> None:
    work, before = row.workload, _before(row)
    lines = [["Why", row.note or row.get_cause_display()]]
    if before is not None and before.p90_at:
        was = "Forecast then" if before.p50_at else "Reservation then"
        lines.insert(0, [was, _band(user, work.cluster, before.p50_at, before.p90_at)])
    title = f"{work.name}: the start that was told does not hold, and no other is told."
    if row.p90_at:
        title = f"{work.name} starts later than {'predicted' if row.p50_at else 'told'}."
        lines.insert(1, ["Now", _band(user, work.cluster, row.p50_at, row.p90_at)])
    _tell(user, Kind.MOVED, work, source=_moved_source(row), title=title, lines=lines)


def _before(row: ToldStart) -> ToldStart | None:
    return ToldStart.objects.filter(workload=row.workload, pk__lt=row.pk).last()


def _band(user: User, cluster: Cluster, p50: datetime | None, p90: datetime) -> str:
    if p50 is None:
        return f"By {_time(user, cluster, p90)}."
    return f"{_time(user, cluster, p50)}, by {_time(user, cluster, p90)} in nine of ten cases."


def _late(cluster: Cluster, people: Iterable[str], now: datetime) -> list[ForecastOutcome]:
    """By the first forecast that was told of it; later ones move with the wait. Those told of stay late until
    they start, so they are left out by the database.
    """
    waiting = Workload.objects.filter(
        cluster=cluster, state__in=WAITING, user__in=list(people), held=False
    )
    rows = ForecastOutcome.objects.filter(
        WAS_TOLD, at_submission=True, started_at=None, told_at__lt=now, workload__in=waiting
    )
    source = Concat(Value(LATE), Cast("workload_id", CharField()))
    notices = Notice.objects.filter(
        user__username=OuterRef("workload__user"), source=OuterRef("source")
    )
    rows = rows.annotate(source=source, due_s=_Seconds("told_at") + F("p90_s"))
    # The database compares: a look reads those who are late, not all who wait.
    found = rows.filter(due_s__lt=now.timestamp()).exclude(Exists(notices)).order_by("due_s", "pk")
    return list(found.select_related("workload__cluster")[:AT_ONCE])


class _Seconds(Func):
    """A moment as seconds since 1970."""

    output_field = FloatField()
    template = "CAST(EXTRACT(EPOCH FROM %(expressions)s) AS double precision)"

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, Any]:
        days = "((julianday(%(expressions)s) - 2440587.5) * 86400.0)"
        return self.as_sql(compiler, connection, template=days, **extra)


def _known_at(outcome: ForecastOutcome) -> datetime:
    return outcome.told_at + timedelta(seconds=outcome.p90_s)


def _tell_soon(user: User, forecast: StartForecast, now: datetime) -> None:
    work = forecast.workload
    start = predicted_start(forecast, now)
    assert start.p90 is not None  # noqa: S101 - asked for
    soon = f"in about {duration(start.p50 - now)}" if start.p50 else "any moment"
    _tell(
        user, Kind.SOON, work, source=_soon_source(forecast),
        title=f"{work.name} starts {soon}.",
        lines=[["By", f"{_time(user, work.cluster, start.p90)} in nine of ten cases."]],
    )  # fmt: skip


def _tell_late(user: User, outcome: ForecastOutcome, now: datetime) -> None:
    work, zone = outcome.workload, outcome.workload.cluster
    first = outcome.told_at + timedelta(seconds=outcome.p50_s)
    lines = [["Forecast then", _band(user, zone, first, _known_at(outcome))]]
    start = predicted_start(StartForecast.objects.filter(workload=work).first(), now)
    if start.p50 is not None:
        lines.append(["Next", f"It is expected to start in {duration(start.p50 - now)}."])
    _tell(
        user, Kind.LATE, work, source=f"{LATE}{work.pk}",
        title=f"{work.name} has waited {duration(now - work.submitted_at)}, longer than predicted.",
        lines=lines,
    )  # fmt: skip


def _tell(
    user: User, kind: Kind, work: Workload, *, source: str, title: str, lines: list[list[str]]
) -> None:
    tell(
        user, kind, work.cluster, source=source, about=work.name, title=title, lines=lines,
        address=reverse("web:workload", args=[work.cluster.name, work.uid]),
    )  # fmt: skip


def _time(user: User, cluster: Cluster, at: datetime) -> str:
    return when(at, cluster.now(), user.display_time_zone or cluster.display_time_zone)


def look_at_budgets() -> None:
    """Tell the members of a queue's team that its GPU-hours of the month are nearly used, or are."""
    for cluster in Cluster.objects.all():
        with transaction.atomic():
            for user, quota, used in _spent(cluster):
                _tell_budget(user, cluster, quota, used)


def _spent(cluster: Cluster) -> Iterator[tuple[User, Quota, float]]:
    """(member, the quota, GPU-hours used) of the budgets that are past the lowest share."""
    now = cluster.now()
    rows = Quota.objects.filter(queue__cluster=cluster, budget_gpu_hours__gt=0).in_force(now)
    quotas = list(rows.select_related("queue", "gpu_class"))
    used = used_gpu_hours(cluster, month(now)[0], now) if quotas else {}
    for quota in quotas:
        spent = used.get((quota.queue_id, quota.gpu_class_id), 0.0)
        if spent >= min(SHARES) / 100 * (quota.budget_gpu_hours or 0):
            for user in _members(quota, now):
                yield user, quota, spent


def _members(quota: Quota, now: datetime) -> Iterable[User]:
    memberships = Membership.objects.in_force(now).filter(team__queue=quota.queue)
    return User.objects.filter(Q(pk__in=memberships.values("user")), is_active=True).order_by("pk")


def _tell_budget(user: User, cluster: Cluster, quota: Quota, used: float) -> None:
    budget, queue, name = quota.budget_gpu_hours or 0, quota.queue, quota.gpu_class.name
    share = next(share for share in SHARES if used >= share / 100 * budget)
    begin, end = month(cluster.now())
    is_spent = share == max(SHARES)
    tell(
        user, Kind.BUDGET, cluster,
        source=f"budget {queue.pk} {quota.gpu_class_id} {begin:%Y-%m} {share}",
        about=queue.name,
        title=f"{queue.name} has used {hours(used)} of its {hours(budget)} GPU-hours of {name} this month.",
        lines=[["Next", _ahead(is_spent, _time(user, cluster, end))]],
        address=reverse("web:queue", args=[cluster.name, queue.name]),
    )  # fmt: skip


def _ahead(is_spent: bool, until: str) -> str:
    if is_spent:
        return f"Nothing more starts there before {until}; what runs goes on inside the quota."
    return f"Once they are used, nothing more starts there before {until}."
