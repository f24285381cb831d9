"""A test delivery: what a firing of a rule would tell, sent now, and who gets it by which way."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.alerts import words
from portal.alerts.circles import first_circle, second_circle
from portal.alerts.models import Firing, Rule, Tell
from portal.alerts.rules import announce_of
from portal.notices.letters import places_of
from portal.notices.models import Kind
from portal.notices.outbox import tell
from portal.notices.times import due_at, ways_of
from scheduling.services.errors import ServiceError

EVERY = timedelta(minutes=1)
"""Of one rule: a test goes to other people's telephones."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """``ways``: bell, mail, webhook; none where the person has turned alerts off. ``due_at``: real time from
    which it shows; later than now in quiet hours and for a digest. ``stands_in``: in place of an owner or a
    lead whom only a true firing names. ``circle``: 1 or 2.
    """

    user: str
    circle: int
    ways: tuple[str, ...]
    due_at: datetime | None
    stands_in: bool


@transaction.atomic
def send_test(rule: Rule, *, by: User) -> list[Receipt]:
    """Send the notice of a made-up firing to whoever would hear of a true one, marked as a test, by the ways
    that they chose. Raises ServiceError within a minute of the last.
    """
    now = timezone.now()
    free = Rule.objects.filter(Q(tested_at=None) | Q(tested_at__lte=now - EVERY), pk=rule.pk)
    if not free.update(tested_at=now):
        raise ServiceError("too_soon", "It was tested within the last minute.", "Try again then.")
    firing = Firing(rule=rule, since=rule.cluster.now(), peak=rule.over, queue=rule.queue)
    first, stands_in = _first(rule, firing, by)
    heard = [_send(rule, firing, user, 1, stands_in) for user in first]
    if rule.escalate_s:
        known = {one.user for one in heard}
        others = (u for u in second_circle(rule, firing.since) if u.get_username() not in known)
        heard += [_send(rule, firing, user, 2, False) for user in others]
    announce_of("alert.tested", by, rule, {}, {"told": [one.user for one in heard]})
    return heard


def _first(rule: Rule, firing: Firing, by: User) -> tuple[Iterable[User], bool]:
    """``by`` where only a true firing says whose work or which queue it is about."""
    nobody_yet = rule.tell == Tell.OWNER or (rule.tell == Tell.LEADS and rule.queue is None)
    return ([by], True) if nobody_yet else (first_circle(rule, firing, firing.since), False)


def _send(rule: Rule, firing: Firing, user: User, circle: int, stands_in: bool) -> Receipt:
    cluster = rule.cluster
    at = due_at(user, Kind.ALERT, timezone.now(), cluster.display_time_zone)
    wanted = ways_of(user)[Kind.ALERT]
    ways = dict.fromkeys(["bell", *(way.value for way, _ in places_of(user) if way in wanted)])
    tell(
        user, Kind.ALERT, cluster, source=f"test {uuid.uuid4().hex}", about=words.title(rule)[:300],
        title=f"Test: {words.headline(rule, firing, is_over=False)}",
        lines=[["Rule", words.fires(rule)], ["Test", "Nothing fires; somebody tries who would hear."]],
        address=reverse("web:alerts", args=[cluster.name]),
    )  # fmt: skip
    return Receipt(user.get_username(), circle, tuple(ways) if at else (), at, stands_in)
