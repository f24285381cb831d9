"""A look at all rules of a cluster: what begins and ends, and who is told."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from math import isnan

import numpy as np
from django.db import transaction
from django.db.models import Max
from django.urls import reverse

from portal.accounts.models import User
from portal.alerts import words
from portal.alerts.circles import first_circle, second_circle
from portal.alerts.firing import NEAR, is_near, is_over, is_quiet
from portal.alerts.models import Figure, Firing, Rule, Tell, Watch
from portal.alerts.rules import FIRST, announce_of, as_json, visible
from portal.alerts.series import LASTING, OF_QUEUES, OF_WORK, series
from portal.display.format import duration
from portal.notices.models import Kind
from portal.notices.outbox import tell
from scheduling.models import Cluster, Queue, Workload

SEEN = ("value", "who", "of_class_id", "near")
"""Of a rule: what a look finds."""
NEAR_KEPT = timedelta(days=14)


def tell_begun(rule: Rule, firing: Firing, now: datetime) -> None:
    """Unless somebody was told of the rule lately."""
    lately = Firing.objects.filter(
        rule=rule, told__gt=0, told_at__gt=now - timedelta(seconds=rule.again_s)
    )
    if not lately.exists():
        title = words.headline(rule, firing, is_over=False)
        people = _tell(rule, firing, first_circle(rule, firing, now), f"alert {firing.pk}", title)
        Firing.objects.filter(pk=firing.pk).update(told=people, told_at=now)


def tell_over(rule: Rule, firing: Firing, now: datetime) -> None:
    """To whoever was told that it began, or that nobody looked after it."""
    people: dict[int, User] = {}
    if firing.told:
        people |= {user.pk: user for user in first_circle(rule, firing, now)}
    if firing.escalated:
        people |= {user.pk: user for user in second_circle(rule, now)}
    title = words.headline(rule, firing, is_over=True)
    _tell(rule, firing, people.values(), f"alert {firing.pk} over", title)


def is_overdue(rule: Rule, firing: Firing, now: datetime) -> bool:
    """Whether nobody has acknowledged it for as long as the rule says, and the second circle was not told."""
    if not rule.escalate_s or firing.acknowledged_at or firing.escalated_at:
        return False
    return now - firing.since >= timedelta(seconds=rule.escalate_s)


def escalate(rule: Rule, firing: Firing, now: datetime) -> None:
    """Tell the second circle, once a firing: whoever acknowledges it in this moment comes first."""
    open_ = Firing.objects.filter(pk=firing.pk, acknowledged_at=None, escalated_at=None, until=None)
    if not open_.update(escalated_at=now):
        return
    waited = duration(now - firing.since)
    title = f"Nobody acknowledged it for {waited}: {words.headline(rule, firing, is_over=False)}"
    people = _tell(rule, firing, second_circle(rule, now), f"alert {firing.pk} escalated", title)
    Firing.objects.filter(pk=firing.pk).update(escalated=people)
    after = {"since": firing.since.isoformat(), "told": people}
    announce_of("alert.escalated", None, rule, {}, after)


def _tell(rule: Rule, firing: Firing, people: Iterable[User], source: str, title: str) -> int:
    """How many were told."""
    count = 0
    for user in people:
        tell(
            user, Kind.ALERT, rule.cluster, source=source, about=words.title(rule)[:300], title=title,
            lines=[["Rule", words.fires(rule)]], address=_address(rule, firing, user),
        )  # fmt: skip
        count += 1
    return count


def _address(rule: Rule, firing: Firing, user: User) -> str:
    """Where ``user`` sees it: on the page of the rule where they may read that, else of what it is about."""
    cluster = rule.cluster
    is_owners = rule.tell == Tell.OWNER and firing.workload is not None
    if not is_owners and visible(user, cluster).filter(pk=rule.pk).exists():
        return reverse("web:alerts", args=[cluster.name])
    if firing.workload is not None:
        return reverse("web:workload", args=[cluster.name, firing.workload.uid])
    if firing.queue is not None:
        return reverse("web:queue", args=[cluster.name, firing.queue.name])
    return reverse("web:alerts", args=[cluster.name])


def look_all() -> None:
    for cluster in Cluster.objects.all():
        look(cluster)


def look(cluster: Cluster) -> None:
    """Reads first, without a lock, as series of a large cluster take their time; then writes rule by rule."""
    now = cluster.now()
    if not _claim(cluster, now):
        return
    rules = Rule.objects.filter(cluster=cluster).order_by("figure", "pk")
    rules = rules.select_related("queue", "gpu_class", "escalate_team")
    moved, names = [], set[str]()
    for rule in rules:
        rule.cluster = cluster
        at = series(rule, np.array([now.timestamp()]))
        value = float(at.values[0])
        before = {name: getattr(rule, name) for name in SEEN}
        rule.value, rule.who = None if isnan(value) else value, int(at.who[0])
        rule.of_class_id = int(at.gpu_class[0]) or None
        fires = _settle(rule, value, rule.who, now)
        rule.near = stretches(rule, is_near(rule, value) and not fires, value, now)
        if changed := {name for name in SEEN if getattr(rule, name) != before[name]}:
            moved.append(rule)
            names |= changed
    # Of a rule that is edited at this very moment the page shows the figure of before until the next look.
    if moved:
        Rule.objects.bulk_update(moved, sorted(names))


def stretches(
    rule: Rule, near: bool, value: float, now: datetime
) -> list[list[float | None]] | None:
    """``near`` of ``rule`` with what it is now; as it was where that has not changed."""
    known: list[list[float | None]] = rule.near or []
    goes_on = bool(known) and known[-1][1] is None
    if near == goes_on:
        return rule.near
    if goes_on:
        return [*known[:-1], [known[-1][0], now.timestamp()]]
    since = now.timestamp()
    if Figure(rule.figure) in LASTING:
        since -= max(0.0, value - NEAR * rule.over)
    oldest = (now - NEAR_KEPT).timestamp()
    return [*(one for one in known if one[1] is not None and one[1] > oldest), [since, None]]


@transaction.atomic
def _claim(cluster: Cluster, now: datetime) -> bool:
    """Whether nobody has looked at a later moment; a cluster without a look gets the first rules."""
    watch, is_new = Watch.objects.get_or_create(cluster=cluster, defaults={"at": now})
    if is_new:
        Rule.objects.bulk_create(Rule(cluster=cluster, **rule) for rule in FIRST)
        return True
    return bool(Watch.objects.filter(pk=watch.pk, at__lte=now).update(at=now))


@transaction.atomic
def _settle(rule: Rule, value: float, who: int, now: datetime) -> bool:
    """Whether it fires. Of two that look at once the second finds what the first has written; a rule that was
    edited or deleted meanwhile is left to the next look.
    """
    current = Rule.objects.select_for_update().filter(pk=rule.pk).order_by("pk").first()
    if current is None or as_json(current) != as_json(rule):
        return False
    firing = Firing.objects.filter(rule=rule, until=None).order_by("pk").first()
    if firing is not None:
        _go_on(rule, firing, value, now)
        return firing.until is None
    over_since = (current.over_since or _began(rule, value, now)) if is_over(rule, value) else None
    if over_since != current.over_since:
        Rule.objects.filter(pk=rule.pk).update(over_since=over_since)
    begins = over_since is not None and now - over_since >= timedelta(seconds=rule.for_s)
    if begins and over_since is not None:
        _begin(rule, value, who, now, over_since)
    return begins


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
        gpu_class_id=rule.of_class_id,
    )
    tell_begun(rule, firing, now)
