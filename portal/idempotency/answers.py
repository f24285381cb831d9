"""A call that is sent again under its key is carried out once: the doors to what was answered."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from cryptography.fernet import Fernet
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from portal.accounts.models import User
from portal.idempotency.models import KeptAnswer
from scheduling.services.errors import ServiceError

LIVES = timedelta(hours=24)
LONGEST_CALL = timedelta(minutes=5)
"""A process that has not answered by then was cut off."""
KEY = re.compile(r"[\x21-\x7e]{8,200}")
SALT = "portal.idempotency"


@dataclass(frozen=True, slots=True)
class KeptReply:
    """``data`` is what JSON can say."""

    status: int
    data: Any
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Claim:
    """The call is this process's to carry out, unless there is an ``answer`` already."""

    row: KeptAnswer
    key: str
    answer: KeptReply | None = None


def claim(user: User, key: str, request: str) -> Claim:
    """``asked`` is all of the call that matters. Raises ServiceError: the key is no key or means another
    call, or the call is under way or was cut off."""
    if not KEY.fullmatch(key):
        raise ServiceError(
            "bad_idempotency_key",
            "The Idempotency-Key is no key.",
            "Send 8 to 200 letters, digits or signs without spaces, such as a new UUID.",
        )
    name, meant = _digest("key", key), _digest("asked", request)
    mine = KeptAnswer.objects.filter(user=user, key=name)
    mine.filter(at__lt=_oldest()).delete()
    try:
        with transaction.atomic():
            row = KeptAnswer.objects.create(user=user, at=timezone.now(), key=name, asked=meant)
    except IntegrityError:
        return _claim_of(mine.first(), key, meant)
    return Claim(row, key)


def _claim_of(row: KeptAnswer | None, key: str, request: str) -> Claim:
    """What is known of a key that is taken; without a ``row`` it was freed this moment."""
    if row is not None and row.asked != request:
        raise ServiceError(
            "key_reused",
            "This Idempotency-Key was sent with another call.",
            "Send a new key with a new call; the same call again goes with its first body.",
        )
    if row is not None and row.answer:
        return Claim(row, key, _read(row.answer, key))
    if row is not None and row.at < timezone.now() - LONGEST_CALL:
        raise ServiceError(
            "outcome_unknown",
            "The first call with this Idempotency-Key was cut off, so nobody knows what came of it.",
            "Look whether it was done. If not, send it with a new key.",
        )
    raise ServiceError(
        "under_way",
        "The first call with this Idempotency-Key is still carried out.",
        "Wait a moment and send it again with the same key.",
    )


def settle(claim: Claim, answer: KeptReply) -> None:
    """Keep the answer for whoever asks again."""
    text = json.dumps(asdict(answer))
    claim.row.answer = _cipher(claim.key).encrypt(text.encode()).decode()
    claim.row.save(update_fields=["answer"])


def release(claim: Claim) -> None:
    """Nothing was done: the key is free again."""
    claim.row.delete()


def forget() -> int:
    """Drop what is older than it is kept; how many."""
    return KeptAnswer.objects.filter(at__lt=_oldest()).delete()[0]


def _oldest() -> Any:
    return timezone.now() - LIVES


def _digest(of: str, text: str) -> str:
    return salted_hmac(f"{SALT}.{of}", text, algorithm="sha256").hexdigest()


def _cipher(key: str) -> Fernet:
    made = salted_hmac(f"{SALT}.answer", key, algorithm="sha256").digest()
    return Fernet(urlsafe_b64encode(made))


def _read(text: str, key: str) -> KeptReply:
    return KeptReply(**json.loads(_cipher(key).decrypt(text.encode())))
