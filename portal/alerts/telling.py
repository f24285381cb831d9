"""What is told of a firing, to whom: when it begins, when nobody acknowledged it, and when it is over."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.urls import reverse

from portal.accounts.models import User
from portal.alerts import words
from portal.alerts.circles import first_circle, second_circle
from portal.alerts.models import Firing, Rule, Tell
from portal.alerts.rules import announce_of
from portal.display.format import duration
from portal.notices.models import Kind
from portal.notices.outbox import tell


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
            lines=[["Rule", words.fires(rule)]], address=_address(rule, firing),
        )  # fmt: skip
        count += 1
    return count


def _address(rule: Rule, firing: Firing) -> str:
    if rule.tell == Tell.OWNER and firing.workload is not None:
        return reverse("web:workload", args=[rule.cluster.name, firing.workload.uid])
    return reverse("web:alerts", args=[rule.cluster.name])
