"""Letters: what of a notice goes by mail and to webhooks. Written with the notice, or not at all."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from portal.accounts.models import User
from portal.notices.models import Kind, Letter, LetterState, Notice, Way, Webhook, When
from portal.notices.times import preferences_of, ways_of

KEPT = timedelta(days=30)
"""A letter that was sent or dropped; a dead one is kept until somebody decides."""

Place = tuple[Way, Webhook | None]


def is_mail_set_up() -> bool:
    return bool(settings.WEIR_MAIL_HOST) or settings.DEMO


def write(user: User, notice: Notice) -> None:
    """One letter a place, or one more notice in the digest's."""
    kind = Kind(notice.kind)
    places = [place for place in places_of(user) if place[0] in ways_of(user)[kind]]
    if not places:
        return
    is_digest = preferences_of(user)[kind] == When.DIGEST
    key = f"digest {notice.due_at:%Y%m%d%H%M}" if is_digest else f"notice {notice.pk}"
    for way, webhook in places:
        letter, _ = Letter.objects.get_or_create(
            user=user, way=way, webhook=webhook, key=key,
            defaults={"made_at": timezone.now(), "due_at": notice.due_at},
        )  # fmt: skip
        letter.notices.add(notice)


def places_of(user: User) -> list[Place]:
    """Where letters to the person can go as things are set up."""
    mail: list[Place] = [(Way.MAIL, None)] if user.email and is_mail_set_up() else []
    return [*mail, *((Way.WEBHOOK, webhook) for webhook in user.webhooks.all())]


def write_test(user: User, webhook: Webhook | None) -> Letter:
    """A letter without news, to the webhook or by mail."""
    now = timezone.now()
    return Letter.objects.create(
        user=user, way=Way.WEBHOOK if webhook else Way.MAIL, webhook=webhook,
        key=f"test {uuid.uuid4().hex}", made_at=now, due_at=now,
    )  # fmt: skip


def last_of(user: User) -> dict[int | None, Letter]:
    """The letter tried last to each place, by webhook; None is mail."""
    found: dict[int | None, Letter] = {}
    for letter in Letter.objects.filter(user=user, tries__gt=0).order_by("-made_at", "-id")[:200]:
        found.setdefault(letter.webhook_id, letter)
    return found


def forget(now: datetime) -> int:
    settled = Letter.objects.filter(state__in=(LetterState.SENT, LetterState.DROPPED))
    return settled.filter(settled_at__lt=now - KEPT).delete()[0]
