"""Sending letters: claimed by one worker at a time, tried again with growing waits, dead in the end.

A letter is marked sent once, by whoever holds its claim. What is killed between sending and marking is sent
again under the same delivery number and Message-ID, by which a receiver knows it.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.core.mail import EmailMessage
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from portal.boundary.outgoing import OutgoingError, post, target_of
from portal.notices import wording
from portal.notices.letters import is_mail_set_up
from portal.notices.models import Letter, LetterState, Notice, Way, Webhook
from portal.notices.webhooks import secret_of
from scheduling.services.errors import ServiceError

log = logging.getLogger(__name__)

MOST_TRIES = 10
FIRST_WAIT_S = 30.0
LONGEST_WAIT_S = 6 * 3600.0
LEASE = timedelta(seconds=90)
"""Longer than any one sending takes, so that who still sends keeps its claim."""
PASS_S = 20.0
"""No letter is begun later in a pass; the next pass goes on."""

dice = random.SystemRandom()

Place = tuple[str, int | None]


def wait_s(tries: int, lot: float) -> float:
    """Seconds until the next try after ``tries``; ``lot`` of [0, 1) takes off up to half, so that not all
    letters to a receiver that came back come at once."""
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (tries - 1)) * (1 - lot / 2)


def deliver_due() -> int:
    """Everything that is due; how many were sent. A place that fails is left alone until the next pass."""
    began, sent = time.monotonic(), 0
    failed: set[Place] = set()
    while time.monotonic() - began < PASS_S:
        letter = claim(timezone.now(), failed)
        if letter is None:
            break
        if _deliver(letter):
            sent += 1
        else:
            failed.add((letter.way, letter.webhook_id))
    return sent


@transaction.atomic
def claim(now: datetime, without: set[Place] = frozenset()) -> Letter | None:  # type: ignore[assignment]
    """The letter that is due first and that nobody holds, now held by the caller."""
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    rows = Letter.objects.filter(free, state=LetterState.WAITING, due_at__lte=now)
    for way, webhook in without:
        rows = rows.exclude(way=way) if webhook is None else rows.exclude(webhook_id=webhook)
    if connection.features.has_select_for_update_skip_locked:
        rows = rows.select_for_update(skip_locked=True)
    found = rows.order_by("due_at", "pk").first()
    if found is None:
        return None
    stamp = uuid.uuid4().hex
    # Where rows can't be locked, of two who saw the same claim one changes it.
    taken = Letter.objects.filter(pk=found.pk, claim=found.claim, state=LetterState.WAITING).update(
        claim=stamp, claimed_until=now + LEASE, tries=found.tries + 1
    )
    return Letter.objects.select_related("user", "webhook").get(claim=stamp) if taken else None


def settle(letter: Letter, **what: object) -> bool:
    """Say what came of it; False where the claim has run out and somebody else holds the letter."""
    rows = Letter.objects.filter(pk=letter.pk, claim=letter.claim, state=LetterState.WAITING)
    return bool(rows.update(claim="", claimed_until=None, **what))


def _deliver(letter: Letter) -> bool:
    now = timezone.now()
    notices = list(letter.notices.select_related("cluster").order_by("at", "pk"))
    if not letter.user.is_active or not (notices or letter.key.startswith("test ")):
        return settle(letter, state=LetterState.DROPPED, settled_at=now, fault="Nobody to tell.")
    if letter.tries > MOST_TRIES:
        _put_off(letter, "Its sender was ended each time.")
        return False
    try:
        _send(letter, notices)
    except OutgoingError as error:
        _put_off(letter, str(error))
        return False
    except Exception:
        log.exception("letter %s", letter.pk)
        _put_off(letter, "Weir failed to send it; its log says why.")
        return False
    return settle(letter, state=LetterState.SENT, settled_at=timezone.now(), fault="")


def _put_off(letter: Letter, fault: str) -> None:
    now = timezone.now()
    if letter.tries >= MOST_TRIES:
        settle(letter, state=LetterState.DEAD, settled_at=now, fault=fault)
        return
    later = now + timedelta(seconds=wait_s(letter.tries, dice.random()))
    settle(letter, due_at=later, fault=fault)


def _send(letter: Letter, notices: Sequence[Notice]) -> None:
    if letter.way == Way.MAIL:
        _mail(letter, notices)
    elif letter.webhook is not None:
        _call(letter, letter.webhook, notices)


def _mail(letter: Letter, notices: Sequence[Notice]) -> None:
    if not is_mail_set_up() or not letter.user.email:
        raise OutgoingError("Mail is not set up, or the person has no address.")
    message = EmailMessage(
        wording.subject(notices),
        wording.mail_text(notices),
        to=[letter.user.email],
        headers={
            "Message-ID": f"<letter-{letter.pk}-{letter.made_at:%Y%m%d%H%M%S}@weir>",
            "Auto-Submitted": "auto-generated",
        },
    )
    try:
        message.send()
    except (OSError, SMTPException) as error:
        raise OutgoingError(f"The mail server refused it: {type(error).__name__}.") from error


def _call(letter: Letter, webhook: Webhook, notices: Sequence[Notice]) -> None:
    """To the address as it is judged now, whatever was found when it was typed."""
    try:
        target = target_of(webhook.address)
    except ServiceError as refusal:
        raise OutgoingError(refusal.sentence) from None
    body, timestamp = wording.payload(letter, notices), str(int(time.time()))
    status = post(
        target,
        body,
        {
            "Content-Type": "application/json",
            "User-Agent": "Weir",
            "Weir-Webhook": str(webhook.pk),
            "Weir-Delivery": str(letter.pk),
            "Weir-Timestamp": timestamp,
            "Weir-Signature": wording.signature(secret_of(webhook), timestamp, body),
        },
    )
    if not 200 <= status < 300:
        raise OutgoingError(f"It answered {status}.")
