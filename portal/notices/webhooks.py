"""A person's webhooks: made, tested and removed by themselves, each with a secret of its own."""

from __future__ import annotations

import secrets

from cryptography.fernet import InvalidToken
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from portal.accounts.models import User
from portal.boundary.outgoing import OutgoingError, target_of
from portal.boundary.reading import one_line
from portal.notices import letters
from portal.notices.models import Letter, LetterState, Way, Webhook
from scheduling.models.ciphers import cipher
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce

MOST = 5
MOST_TESTS = 5
PURPOSE = "weir webhooks"


def add(user: User, *, name: str, address: str) -> tuple[Webhook, str]:
    """(the webhook, its secret in plain, which nobody shows again). Raises ServiceError at the field."""
    name = name.strip()
    if not name or len(name) > 63:
        raise ServiceError(
            "bad_name", "It needs a name.", "Write 1 to 63 characters.", field="name"
        )
    try:
        one_line(name)
    except ValidationError as refusal:
        raise ServiceError(
            "bad_name", "That cannot be its name.", refusal.messages[0], field="name"
        ) from None
    host = target_of(address).host
    secret = f"whsec_{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        if user.webhooks.count() >= MOST:
            raise ServiceError(
                "too_many", f"You have {MOST} webhooks.", "Remove one first.", field="name"
            )
        if user.webhooks.filter(name=name).exists():
            raise ServiceError(
                "name_taken", "You have a webhook of that name.", "Choose another.", field="name"
            )
        sealed = cipher(PURPOSE).encrypt(secret.encode()).decode()
        made = Webhook.objects.create(
            user=user, name=name, address=address, sealed_secret=sealed, made_at=timezone.now()
        )
        announce("webhook.added", actor=user, subject=name, after={"host": host})
    return made, secret


@transaction.atomic
def remove(user: User, webhook: Webhook) -> None:
    """What waits for it goes with it."""
    announce("webhook.removed", actor=user, subject=webhook.name)
    webhook.delete()


def send_test(user: User, webhook: Webhook | None) -> Letter:
    """A letter without news to it, or by mail. Raises ServiceError where several wait, or mail can't go."""
    if webhook is None and (Way.MAIL, None) not in letters.places_of(user):
        raise ServiceError(
            "no_mail",
            "No mail can reach you.",
            "It needs a mail server, and your address: ask who administers Weir.",
        )
    waiting = Letter.objects.filter(user=user, state=LetterState.WAITING, key__startswith="test ")
    if waiting.count() >= MOST_TESTS:
        raise ServiceError("too_many", f"{MOST_TESTS} tests wait already.", "Try again later.")
    return letters.write_test(user, webhook)


def secret_of(webhook: Webhook) -> str:
    """In plain, for signing. Raises OutgoingError where the key it was sealed with is gone."""
    try:
        return cipher(PURPOSE).decrypt(webhook.sealed_secret.encode()).decode()
    except InvalidToken:
        raise OutgoingError("Its secret can't be read. Make the webhook anew.") from None
