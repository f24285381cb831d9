"""A look at all rules of a cluster: what begins and ends, and who is told."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import isnan

import numpy as np
from django.db import transaction
from django.db.models import Max

from portal.alerts.firing import is_over, is_quiet
from portal.alerts.models import Figure, Firing, Rule, Watch
from portal.alerts.rules import FIRST, told
from portal.alerts.series import LASTING, OF_QUEUES, OF_WORK, series
from portal.alerts.telling import escalate, is_overdue, tell_begun, tell_over
from scheduling.models import Cluster, Queue, Workload


def look_all() -> None:
    for cluster in Cluster.objects.all():
        look(cluster)


def look(cluster: Cluster) -> None:
    """Reads first, without a lock, as series of a large cluster take their time; then writes rule by rule."""
    now = cluster.now()
    if not _claim(cluster, now):
        return
    rules = Rule.objects.filter(cluster=cluster).select_related(
        "queue", "gpu_class", "escalate_team"
    )
    moved = []
    for rule in rules:
        rule.cluster = cluster
        at = series(rule, np.array([now.timestamp()]))
        value, who = float(at.values[0]), int(at.who[0])
        _settle(rule, value, who, now)
        known = None if isnan(value) else value
        if (rule.value, rule.who) != (known, who):
            rule.value, rule.who = known, who
            moved.append(rule)
    # Of a rule that is edited at this very moment the page shows the figure of before until the next look.
    Rule.objects.bulk_update(moved, ["value", "who"])


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
    held = Rule.objects.select_for_update(of=("self",)).filter(pk=rule.pk).first()
    if held is None or told(held) != told(rule):
        return
    firing = Firing.objects.filter(rule=rule, until=None).first()
    if firing is not None:
        _go_on(rule, firing, value, now)
        return
    over_since = (held.over_since or _began(rule, value, now)) if is_over(rule, value) else None
    if over_since != held.over_since:
        Rule.objects.filter(pk=rule.pk).update(over_since=over_since)
    if over_since is not None and now - over_since >= timedelta(seconds=rule.for_s):
        _begin(rule, value, who, now, over_since)


def _began(rule: Rule, value: float, now: datetime) -> datetime:
    """When it came over its bound: of what lasts that follows from how long it has, else nobody knows more
    than that it is now. Not before the end of when it fired last."""
    if Figure(rule.figure) not in LASTING:
        return now
    ended = Firing.objects.filter(rule=rule).aggregate(at=Max("until"))["at"]
    began = now - timedelta(seconds=value - rule.over)
    return max(began, ended) if ended else began


def _go_on(rule: Rule, firing: Firing, value: float, now: datetime) -> None:
    if is_quiet(rule, value):
        Firing.objects.filter(pk=firing.pk).update(until=now)
        Rule.objects.filter(pk=rule.pk).update(over_since=None)
        firing.until = now
        tell_over(rule, firing, now)
        return
    if value > firing.peak:
        Firing.objects.filter(pk=firing.pk).update(peak=value)
        firing.peak = value
    if is_overdue(rule, firing, now):
        escalate(rule, firing, now)


def _begin(rule: Rule, value: float, who: int, now: datetime, over_since: datetime) -> None:
    figure = Figure(rule.figure)
    firing = Firing.objects.create(
        rule=rule,
        since=over_since + timedelta(seconds=rule.for_s),
        peak=value,
        workload=Workload.objects.filter(pk=who).first() if figure in OF_WORK else None,
        queue=Queue.objects.filter(pk=who).first() if figure in OF_QUEUES else rule.queue,
    )
    tell_begun(rule, firing, now)
