"""Letters that died: every operator's to try again or to drop, audited. What stands in them is not shown."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from portal.accounts.models import User
from portal.notices.models import Letter, LetterState
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce


def dead() -> QuerySet[Letter]:
    """Those that died, the newest first."""
    rows = Letter.objects.filter(state=LetterState.DEAD).select_related("user", "webhook")
    return rows.order_by("-settled_at", "-pk")


@dataclass(frozen=True, slots=True)
class Backlog:
    waiting: int
    failing: int
    """Of those that wait, tried and put off."""
    dead: int


def backlog() -> Backlog:
    waiting = Letter.objects.filter(state=LetterState.WAITING)
    return Backlog(waiting.count(), waiting.exclude(fault="").count(), dead().count())


def place(letter: Letter) -> str:
    """Where it was to go, without the path: that of a webhook lets anybody write there."""
    if letter.webhook is None:
        return letter.user.email
    return urlsplit(letter.webhook.address).netloc


def try_again(by: User, letter: Letter) -> None:
    """At once, and as often as a new one. Raises ServiceError where it is dead no more."""
    _decide(by, letter, "letter.retried", LetterState.WAITING)


def drop(by: User, letter: Letter) -> None:
    """Raises ServiceError where it is dead no more."""
    _decide(by, letter, "letter.dropped", LetterState.DROPPED)


@transaction.atomic
def _decide(by: User, letter: Letter, kind: str, state: LetterState) -> None:
    now = timezone.now()
    fresh = {"tries": 0, "due_at": now, "settled_at": None} if state == LetterState.WAITING else {}
    rows = Letter.objects.filter(pk=letter.pk, state=LetterState.DEAD)
    if not rows.update(state=state, **{"settled_at": now, **fresh}):
        raise ServiceError(
            "not_dead", "Somebody has decided on that letter already.", "Look at the list again."
        )
    announce(
        kind,
        actor=by,
        subject=f"letter {letter.pk} to {letter.user}",
        before={"state": LetterState.DEAD, "tries": letter.tries, "fault": letter.fault},
        after={"state": state, "way": letter.way, "place": place(letter)},
    )
