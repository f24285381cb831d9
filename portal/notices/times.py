"""When a person is told of something: at once, after quiet hours, with the digest, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from portal.accounts.models import User
from portal.display.format import zone
from portal.notices.models import Hours, Kind, Preference, Way, When

DEFAULTS: Mapping[Kind, When] = {
    Kind.EVICTED: When.AT_ONCE,
    Kind.STARTED: When.AT_ONCE,
    Kind.FINISHED: When.DIGEST,
    Kind.FAILED: When.AT_ONCE,
    Kind.SOON: When.AT_ONCE,
    Kind.LATE: When.DIGEST,
    Kind.MOVED: When.AT_ONCE,
    Kind.NEEDS_ME: When.AT_ONCE,
    Kind.DECIDED: When.AT_ONCE,
    Kind.COMMENT: When.AT_ONCE,
    Kind.ENDS: When.DIGEST,
    Kind.BUDGET: When.AT_ONCE,
    Kind.IDLE: When.AT_ONCE,
    Kind.ALERT: When.AT_ONCE,
    Kind.REPORT: When.AT_ONCE,
}
BY_MAIL = frozenset(Kind) - {
    Kind.STARTED, Kind.FINISHED, Kind.SOON, Kind.MOVED, Kind.COMMENT,
}  # fmt: skip
BY_WEBHOOK = frozenset({Kind.EVICTED, Kind.STARTED, Kind.FAILED, Kind.SOON, Kind.ALERT})
"""What goes by which way unless the person says otherwise."""
NEVER_QUIET = (Kind.EVICTED,)
"""Told in quiet hours too: somebody may want to act."""


def preferences_of(user: User) -> dict[Kind, When]:
    own = dict(Preference.objects.filter(user=user).values_list("kind", "when"))
    return {kind: When(own.get(kind, when)) for kind, when in DEFAULTS.items()}


def default_ways(kind: Kind) -> frozenset[Way]:
    by = {Way.MAIL: BY_MAIL, Way.WEBHOOK: BY_WEBHOOK}
    return frozenset(way for way, kinds in by.items() if kind in kinds)


def ways_of(user: User) -> dict[Kind, frozenset[Way]]:
    """By which ways the person is told of each kind, besides the bell."""
    own = {row.kind: row for row in Preference.objects.filter(user=user)}
    return {kind: _ways(kind, own.get(kind)) for kind in Kind}


def _ways(kind: Kind, row: Preference | None) -> frozenset[Way]:
    ruled = {} if row is None else {Way.MAIL: row.mail, Way.WEBHOOK: row.webhook}
    usual = default_ways(kind)
    return frozenset(way for way in Way if (way in usual if ruled.get(way) is None else ruled[way]))


def hours_of(user: User) -> Hours:
    return Hours.objects.filter(user=user).first() or Hours(user=user)


def due_at(user: User, kind: Kind, now: datetime, zone_name: str) -> datetime | None:
    """From when it shows; None where the person wants none of it."""
    when = preferences_of(user)[kind]
    if when == When.OFF:
        return None
    hours = hours_of(user)
    local = now.astimezone(zone(user.display_time_zone or zone_name))
    if when == When.DIGEST:
        return _next(local, hours.digest_hour)
    if kind not in NEVER_QUIET and is_quiet(hours, local.hour):
        assert hours.quiet_until is not None  # noqa: S101 - quiet hours have both ends
        return _next(local, hours.quiet_until)
    return now


def is_quiet(hours: Hours, hour: int) -> bool:
    """Quiet hours may pass midnight: 20 to 7."""
    begin, end = hours.quiet_from, hours.quiet_until
    if begin is None or end is None or begin == end:
        return False
    return begin <= hour < end if begin < end else hour >= begin or hour < end


def _next(local: datetime, hour: int) -> datetime:
    at = local.replace(hour=hour, minute=0, second=0, microsecond=0)
    return at if at > local else at + timedelta(days=1)
