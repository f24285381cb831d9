"""Sending what waits: a stream is claimed by one worker at a time, and its cursor moves once a batch arrived.

A kill between sending and moving sends the batch again, under the same ids; a kill anywhere else costs
nothing. A target that fails keeps what is meant for it waiting, and nothing else.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from portal.boundary.outgoing import OutgoingError
from portal.streams import batches
from portal.streams.batches import Batch
from portal.streams.models import Stream
from portal.streams.sending import send
from portal.streams.targets import configured, target_named

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=90)
"""Longer than any one batch takes, so that who still sends keeps its claim."""
PASS_S = 20.0
"""No batch is begun later in a pass; the next goes on."""
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 600.0

dice = random.SystemRandom()


def wait_s(tries: int, lot: float) -> float:
    """Seconds until the next try after ``tries``; ``lot`` of [0, 1) takes off up to half."""
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(tries - 1, 20)) * (1 - lot / 2)


def send_due() -> int:
    """Everything that waits, of every stream that has a target; how many records went out."""
    until = time.monotonic() + PASS_S
    return sum(_drain(name, address, until) for name, address in configured().items())


def claim(name: str, now: datetime) -> Stream | None:
    """The stream, held by the caller now; None where somebody else holds it, or it is not due."""
    Stream.objects.get_or_create(pk=name)
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    due = Q(due_at=None) | Q(due_at__lte=now)
    stamp = uuid.uuid4().hex
    taken = Stream.objects.filter(free, due, pk=name).update(claim=stamp, claimed_until=now + LEASE)
    return Stream.objects.get(pk=name) if taken else None


def settle(stream: Stream, batch: Batch) -> bool:
    """Move the cursor; False where the claim has run out and somebody else holds the stream."""
    now = timezone.now()
    sent = {"sent_at": now, **HEALED} if batch.records else {}
    with transaction.atomic():
        if not _hold(stream, claimed_until=now + LEASE, **sent):
            return False
        batches.move(stream, batch)
    return True


HEALED = {"tries": 0, "due_at": None, "failing_since": None, "fault": ""}


def _hold(stream: Stream, **what: object) -> bool:
    """Write ``what`` while the claim still is the caller's."""
    return bool(Stream.objects.filter(pk=stream.pk, claim=stream.claim).update(**what))


def _drain(name: str, address: str, until: float) -> int:
    stream = claim(name, timezone.now())
    if stream is None:
        return 0
    sent = 0
    try:
        while time.monotonic() < until:
            arrived = _send_next(stream, address)
            if arrived is None:
                break
            sent += arrived
            stream.refresh_from_db(fields=["number"])
    except OutgoingError as error:
        _put_off(stream, str(error))
        return sent
    except Exception:
        log.exception("stream %s", name)
        _put_off(stream, "Weir failed to send it; its log says why.")
        return sent
    _hold(stream, claim="", claimed_until=None)
    return sent


def _send_next(stream: Stream, address: str) -> int | None:
    """How many records went out; None where nothing waits, or the stream is somebody else's by now."""
    target = target_named(address)
    batch = batches.next_of(stream)
    if batch is None:
        return None
    if batch.records:
        send(target, batch.records)
    return len(batch.records) if settle(stream, batch) else None


def _put_off(stream: Stream, fault: str) -> None:
    now = timezone.now()
    tries = Stream.objects.values_list("tries", flat=True).get(pk=stream.pk) + 1
    later = now + timedelta(seconds=wait_s(tries, dice.random()))
    _hold(
        stream, claim="", claimed_until=None, tries=F("tries") + 1, due_at=later, fault=fault[:200],
        failing_since=Coalesce(F("failing_since"), now),
    )  # fmt: skip
    log.warning("stream %s does not go out: %s", stream.name, fault)
