"""What a person reads of their notices, and the doors by which they are read and ruled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.db.models import Case, Count, Q, QuerySet
from django.db.models import When as If
from django.utils import timezone

from portal.accounts.models import User
from portal.notices.models import Hours, Kind, Notice, Preference, Way, When
from portal.notices.times import DEFAULTS, default_ways, preferences_of, ways_of
from scheduling.services.errors import ServiceError

KEPT = timedelta(days=90)
NEEDS = (Kind.NEEDS_ME, Kind.FAILED)
"""Kinds that ask the reader to do something, until they are read."""


@dataclass(slots=True)
class Group:
    """Notices of one thing, the newest first."""

    about: str
    notices: list[Notice] = field(default_factory=list)

    @property
    def new(self) -> int:
        return sum(one.read_at is None for one in self.notices)

    @property
    def needs_me(self) -> bool:
        return any(needs(one) for one in self.notices)


def visible(user: User) -> QuerySet[Notice]:
    """Theirs, those that are due."""
    rows = Notice.objects.filter(user=user, due_at__lte=timezone.now())
    return rows.select_related("cluster")


def needs(notice: Notice) -> bool:
    """Whether it asks the reader to do something."""
    return notice.read_at is None and notice.kind in NEEDS


def counts(user: User) -> Mapping[str, int]:
    """How many there are, how many of them are new, and how many need the reader. One query."""
    new = Q(read_at=None)
    found: Mapping[str, int] = visible(user).aggregate(
        total=Count("pk"),
        new=Count("pk", filter=new),
        needs=Count("pk", filter=new & Q(kind__in=NEEDS)),
    )
    return found


def in_order(notices: QuerySet[Notice]) -> QuerySet[Notice]:
    """Those that need the reader first, then what is new, then the rest; each the newest first."""
    place = Case(If(read_at=None, kind__in=NEEDS, then=0), If(read_at=None, then=1), default=2)
    return notices.order_by(place, "-at", "-id")


def unread(user: User) -> int:
    return visible(user).filter(read_at=None).count()


def grouped(notices: Iterable[Notice]) -> list[Group]:
    """Put together by what they are about, in the order of the first of each."""
    groups: dict[str, Group] = {}
    for one in notices:
        groups.setdefault(one.about, Group(one.about)).notices.append(one)
    return list(groups.values())


def mark_read(user: User, *, about: str | None = None, pks: Iterable[int] | None = None) -> int:
    """Those of one thing, those of these numbers, or all; how many were new."""
    rows = visible(user).filter(read_at=None)
    if about is not None:
        rows = rows.filter(about=about)
    if pks is not None:
        rows = rows.filter(pk__in=list(pks))
    return rows.update(read_at=timezone.now())


@transaction.atomic
def set_preferences(
    user: User,
    *,
    preferences: Mapping[str, str],
    digest_hour: int,
    quiet_from: int | None,
    quiet_until: int | None,
    ways: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """How the person wants to be told; kinds that are left out stay as they are. Raises ServiceError at the
    field."""
    named = {kind: frozenset(chosen) for kind, chosen in (ways or {}).items()}
    _check_kinds(preferences, named)
    _check_hours(digest_hour, quiet_from, quiet_until)
    whens, by = preferences_of(user), ways_of(user)
    for kind in map(Kind, {**preferences, **named}):
        when = When(preferences.get(kind, whens[kind]))
        _keep(user, kind, when, frozenset(map(Way, named.get(kind, by[kind]))))
    Hours.objects.update_or_create(
        user=user,
        defaults={"digest_hour": digest_hour, "quiet_from": quiet_from, "quiet_until": quiet_until},
    )


def _check_kinds(preferences: Mapping[str, str], ways: Mapping[str, frozenset[str]]) -> None:
    for kind, when in preferences.items():
        if kind not in Kind.values or when not in When.values:
            raise ServiceError(
                "bad_preference",
                "That is no way of telling.",
                "Choose at once, digest or off.",
                field=kind,
            )
    for kind, named in ways.items():
        if kind not in Kind.values or not named <= set(Way.values):
            raise ServiceError(
                "bad_way", "That is no way of telling.", "Choose of mail and webhook.", field="ways"
            )


def _check_hours(digest_hour: int, quiet_from: int | None, quiet_until: int | None) -> None:
    for name, hour in (
        ("digest_hour", digest_hour),
        ("quiet_from", quiet_from),
        ("quiet_until", quiet_until),
    ):
        if hour is not None and not 0 <= hour <= 23:
            raise ServiceError("bad_hour", "That is no hour.", "Write 0 to 23.", field=name)
    if (quiet_from is None) != (quiet_until is None):
        raise ServiceError(
            "half_quiet", "Quiet hours have two ends.", "Set both, or none.", field="quiet_until"
        )


def _keep(user: User, kind: Kind, when: When, by: frozenset[Way]) -> None:
    """What is as the kind has it needs no row, so that a default that changes reaches it."""
    usual = default_ways(kind)
    if when == DEFAULTS[kind] and by == usual:
        Preference.objects.filter(user=user, kind=kind).delete()
        return
    own = {way.value: None if (way in by) == (way in usual) else way in by for way in Way}
    Preference.objects.update_or_create(user=user, kind=kind, defaults={"when": when, **own})


def forget() -> int:
    return Notice.objects.filter(due_at__lt=timezone.now() - KEPT).delete()[0]
