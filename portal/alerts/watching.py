"""A look at all rules of a cluster: what begins and ends, and who is told."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import numpy as np
from django.db import transaction
from django.urls import reverse

from portal.accounts.capabilities import Capability
from portal.accounts.models import User
from portal.alerts import words
from portal.alerts.firing import is_over, is_quiet
from portal.alerts.models import Figure, Firing, Rule, Tell, Watch
from portal.alerts.rules import FIRST
from portal.alerts.series import OF_QUEUES, OF_WORK, series
from portal.approvals.loans.who import leads_of
from portal.notices.models import Kind
from portal.notices.outbox import tell
from portal.teams.models import Membership
from scheduling.models import Cluster, Queue, Workload


def look_all() -> None:
    for cluster in Cluster.objects.all():
        look(cluster)


@transaction.atomic
def look(cluster: Cluster) -> None:
    """Once a moment, by one process at a time."""
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    now = cluster.now()
    watch, is_new = Watch.objects.get_or_create(cluster=cluster, defaults={"at": now})
    if is_new:
        Rule.objects.bulk_create(Rule(cluster=cluster, **rule) for rule in FIRST)
    elif now < watch.at:
        return
    Watch.objects.filter(pk=watch.pk).update(at=now)
    rules = Rule.objects.filter(cluster=cluster).select_related("queue", "gpu_class")
    open_ = {f.rule_id: f for f in Firing.objects.filter(rule__cluster=cluster, until=None)}
    for rule in rules:
        rule.cluster = cluster
        _look(rule, open_.get(rule.pk), now)


def _look(rule: Rule, firing: Firing | None, now: datetime) -> None:
    at = series(rule, np.array([now.timestamp()]))
    value, who = float(at.values[0]), int(at.who[0])
    if firing is not None:
        _go_on(rule, firing, value, now)
        return
    over_since = (rule.over_since or now) if is_over(rule, value) else None
    if over_since != rule.over_since:
        Rule.objects.filter(pk=rule.pk).update(over_since=over_since)
    if over_since is not None and now - over_since >= timedelta(seconds=rule.for_s):
        _begin(rule, value, who, now)


def _go_on(rule: Rule, firing: Firing, value: float, now: datetime) -> None:
    if is_quiet(rule, value):
        Firing.objects.filter(pk=firing.pk).update(until=now)
        Rule.objects.filter(pk=rule.pk).update(over_since=None)
        firing.until = now
        if firing.told:
            _tell_all(rule, firing, now, is_over=True)
    elif value > firing.peak:
        Firing.objects.filter(pk=firing.pk).update(peak=value)


def _begin(rule: Rule, value: float, who: int, now: datetime) -> None:
    figure = Figure(rule.figure)
    firing = Firing.objects.create(
        rule=rule,
        since=now,
        peak=value,
        workload=Workload.objects.filter(pk=who).first() if figure in OF_WORK else None,
        queue=Queue.objects.filter(pk=who).first() if figure in OF_QUEUES else rule.queue,
    )
    told_lately = Firing.objects.filter(
        rule=rule, told__gt=0, told_at__gt=now - timedelta(seconds=rule.again_s)
    )
    if not told_lately.exists():
        told = _tell_all(rule, firing, now, is_over=False)
        Firing.objects.filter(pk=firing.pk).update(told=told, told_at=now)


def _tell_all(rule: Rule, firing: Firing, now: datetime, *, is_over: bool) -> int:
    """How many were told."""
    count = 0
    for user in _whom(rule, firing, now):
        tell(
            user, Kind.ALERT, rule.cluster, source=f"alert {firing.pk}{' over' if is_over else ''}",
            about=words.title(rule)[:300], title=words.headline(rule, firing, is_over=is_over),
            lines=[["Rule", words.fires(rule)]],
            address=_address(rule, firing),
        )  # fmt: skip
        count += 1
    return count


def _address(rule: Rule, firing: Firing) -> str:
    if rule.tell == Tell.OWNER and firing.workload is not None:
        return reverse("web:workload", args=[rule.cluster.name, firing.workload.uid])
    return reverse("web:alerts", args=[rule.cluster.name])


def _whom(rule: Rule, firing: Firing, now: datetime) -> Iterable[User]:
    if rule.tell == Tell.OWNER and firing.workload is not None:
        return User.objects.filter(username=firing.workload.user, is_active=True)
    if rule.tell == Tell.LEADS:
        place = firing.workload.queue if firing.workload is not None else firing.queue
        found = list(leads_of(place)) if place is not None else []
        if found:
            return found
    return _operators(rule.cluster, now)


def _operators(cluster: Cluster, now: datetime) -> list[User]:
    held = Membership.objects.in_force(now).filter(
        team__queue__cluster=cluster, team__queue__parent=None, user__is_active=True
    )
    rows = held.select_related("user", "persona").order_by("user_id")
    found = {row.user_id: row.user for row in rows if Capability.OPERATE in row.persona.grants}
    return list(found.values())
