"""Everything that lies enciphered, written anew with the key of now, so that the keys before it can go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from allauth.mfa.models import Authenticator
from cryptography.fernet import InvalidToken
from django.db import transaction

from portal.accounts.adapters import PURPOSE as FACTORS
from portal.notices.models import Webhook
from portal.notices.webhooks import PURPOSE as WEBHOOKS
from scheduling.models import Credential
from scheduling.models.ciphers import cipher
from scheduling.models.credentials import PURPOSE as CREDENTIALS

IN_FACTORS = ("secret", "seed")
"""Keys of an authenticator's data whose values are enciphered; of the list each code is."""
LISTS = ("migrated_codes",)


@dataclass(frozen=True, slots=True)
class RotationCount:
    """Of one kind: how many were written anew, and which could not be read with any of the keys."""

    what: str
    written: int
    lost: list[str]


def rotate() -> list[RotationCount]:
    """Each row in a transaction of its own, locked; safe to run twice and beside all processes."""
    return [
        _rotated("credentials of clusters", Credential, _column("sealed", CREDENTIALS)),
        _rotated("secrets of webhooks", Webhook, _column("sealed_secret", WEBHOOKS)),
        _rotated("second factors", Authenticator, _factor),
    ]


def _rotated(what: str, model: Any, anew: Callable[[Any], bool]) -> RotationCount:
    written, lost = 0, []
    for pk in list(model.objects.order_by("pk").values_list("pk", flat=True)):
        with transaction.atomic():
            row = model.objects.select_for_update().filter(pk=pk).first()
            try:
                written += row is not None and anew(row)
            except InvalidToken:
                lost.append(str(row))
    return RotationCount(what, written, lost)


def _column(name: str, purpose: str) -> Callable[[Any], bool]:
    def anew(row: Any) -> bool:
        setattr(row, name, _turned(purpose, getattr(row, name)))
        row.save(update_fields=[name])
        return True

    return anew


def _factor(row: Authenticator) -> bool:
    values = dict(_of_factor(row.data))
    row.data = {**row.data, **values}
    row.save(update_fields=["data"])
    return bool(values)


def _of_factor(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in IN_FACTORS:
        if data.get(key):
            yield key, _turned(FACTORS, data[key])
    for key in LISTS:
        if data.get(key):
            yield key, [_turned(FACTORS, one) for one in data[key]]


def _turned(purpose: str, token: str) -> str:
    return cipher(purpose).rotate(token.encode()).decode()
