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
from portal.alerts.rules import FIRST, told
from portal.alerts.series import OF_QUEUES, OF_WORK, series
from portal.approvals.loans.who import leads_of
from portal.notices.models import Kind
from portal.notices.outbox import tell
from portal.teams.models import Membership
from scheduling.models import Cluster, Queue, Workload


def look_all() -> None:
    for cluster in Cluster.objects.all():
        look(cluster)


def look(cluster: Cluster) -> None:
    """Reads first, without a lock, as series of a large cluster take their time; then writes rule by rule."""
    now = cluster.now()
    if not _claim(cluster, now):
        return
    rules = Rule.objects.filter(cluster=cluster).select_related("queue", "gpu_class")
    for rule in rules:
        rule.cluster = cluster
        at = series(rule, np.array([now.timestamp()]))
        _settle(rule, float(at.values[0]), int(at.who[0]), now)


@transaction.atomic
def _claim(cluster: Cluster, now: datetime) -> bool:
    """Whether nobody has looked at a later moment; a cluster without a look gets the first rules."""
    watch, is_new = Watch.objects.get_or_create(cluster=cluster, defaults={"at": now})
    if is_new:
        Rule.objects.bulk_create(Rule(cluster=cluster, **rule) for rule in FIRST)
        return True
    return bool(Watch.objects.filter(pk=watch.pk, at__lte=now).update(at=now))


@transaction.atomic
def _settle(rule: Rule, value: float, who: int, now: datetime) -> None:
    """Of two that look at once the second finds what the first has written; a rule that was edited or deleted
    meanwhile is left to the next look.
    """
    held = Rule.objects.select_for_update().filter(pk=rule.pk).first()
    if held is None or told(held) != told(rule):
        return
    firing = Firing.objects.filter(rule=rule, until=None).first()
    if firing is not None:
        _go_on(rule, firing, value, now)
        return
    over_since = (held.over_since or now) if is_over(rule, value) else None
    if over_since != held.over_since:
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
        people = _tell_all(rule, firing, now, is_over=False)
        Firing.objects.filter(pk=firing.pk).update(told=people, told_at=now)


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
