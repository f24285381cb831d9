"""How often a password may be guessed.

Three counts of tries that failed, each of its own reach:

* of one name from one address: 8 in 15 minutes. Somebody else's name, and the same name elsewhere,
  are not touched by it, so nobody locks others out.
* of one address, whatever the names: 50 an hour, against one password tried on everybody.
* of one name, whatever the addresses: 50 an hour, against guesses from many machines.

The two wide ones do not hold where the person has signed in from this address before, so whoever
guesses elsewhere, or at others, slows guessing down without keeping people from their work.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from ipaddress import IPv6Address, ip_address, ip_network
from operator import or_

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Aggregate, Count, Min, Q
from django.utils import timezone

from portal.accounts.ldap import AwayError
from portal.accounts.models import KnownAddress, SignInTry, User

KNOWN_FOR = timedelta(days=90)


class LockedError(ValidationError):
    """Too many tries; the next is possible in so many ``minutes``."""

    def __init__(self, wait: timedelta) -> None:
        self.minutes = max(1, math.ceil(wait.total_seconds() / 60))
        how_long = "a minute" if self.minutes == 1 else f"{self.minutes} minutes"
        sentence = f"Too many attempts. Wait {how_long}, then try again, or ask an admin."
        super().__init__(sentence, code="locked")


@dataclass(frozen=True)
class Bound:
    """At most ``limit`` tries among those that are ``of`` it within ``span``."""

    limit: int
    span: timedelta
    of: Q

    def since(self, now: datetime) -> Q:
        return self.of & Q(at__gt=now - self.span)


@contextmanager
def one_try(name: str, address: str) -> Iterator[None]:
    """Around the check of a password, which raises ValidationError when it is wrong.

    The try is counted before the check and forgotten after a right one, so guesses sent at the same
    moment all see each other. Raises LockedError in place of the check when there were too many, and
    after a wrong one that was the last.
    """
    now, origin = timezone.now(), origin_of(address)
    bounds = _bounds(name, origin)
    longest = max(bound.span for bound in bounds)
    SignInTry.objects.filter(at__lte=now - longest).delete()
    mine = SignInTry.objects.create(name_digest=_digest(name), address=origin, at=now)
    left, wait = _standing(bounds, now)
    if left < 0:
        mine.delete()
        raise LockedError(wait)
    try:
        yield
    except AwayError:
        mine.delete()  # no password was checked
        raise
    except ValidationError:
        if left == 0:
            raise LockedError(wait) from None
        raise
    SignInTry.objects.filter(name_digest=mine.name_digest, address=origin).delete()


def remember(user: User, address: str) -> None:
    """``user`` has signed in from ``address``. Forgets where nobody has for 90 days."""
    now = timezone.now()
    KnownAddress.objects.filter(last_at__lt=now - KNOWN_FOR).delete()
    KnownAddress.objects.update_or_create(
        user=user, address=origin_of(address), defaults={"last_at": now}
    )


NO_ADDRESS = "unknown"


def origin_of(address: str) -> str:
    """What counts as one address: of IPv6 the /64, because that is what one person is given. What is none at
    all counts as one, and a zone says nothing of whoever asks."""
    try:
        found = ip_address(address)
    except ValueError:
        return NO_ADDRESS
    if isinstance(found, IPv6Address):
        return str(ip_network((int(found), 64), strict=False).network_address)
    return str(found)


def _bounds(name: str, origin: str) -> list[Bound]:
    of_name, of_address = Q(name_digest=_digest(name)), Q(address=origin)
    wait = timedelta(seconds=settings.WEIR_SIGN_IN_WAIT_S)
    bounds = [Bound(settings.WEIR_SIGN_IN_TRIES, wait, of_name & of_address)]
    if not KnownAddress.objects.filter(user__username=name, address=origin).exists():
        limit = settings.WEIR_SIGN_IN_TRIES_WIDE
        wide = timedelta(seconds=settings.WEIR_SIGN_IN_WAIT_WIDE_S)
        bounds += [Bound(limit, wide, of_name), Bound(limit, wide, of_address)]
    return bounds


def _standing(bounds: list[Bound], now: datetime) -> tuple[int, timedelta]:
    """(tries left, below 0 when there are too many; how long until the tightest bound has room)."""
    figures: dict[str, Aggregate] = {}
    for i, bound in enumerate(bounds):
        figures[f"count_{i}"] = Count("pk", filter=bound.since(now))
        figures[f"oldest_{i}"] = Min("at", filter=bound.since(now))
    concerned = reduce(or_, (bound.since(now) for bound in bounds))
    found = SignInTry.objects.filter(concerned).aggregate(**figures)
    return min(
        (
            (bound.limit - found[f"count_{i}"], found[f"oldest_{i}"] + bound.span - now)
            for i, bound in enumerate(bounds)
        ),
        key=lambda standing: standing[0],
    )


def _digest(name: str) -> str:
    """The same for spellings that look alike to a person, so that they are one count."""
    folded = unicodedata.normalize("NFKC", name).casefold().strip()
    return hashlib.sha256(folded.encode(errors="surrogatepass")).hexdigest()
