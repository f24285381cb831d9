"""Where a demo's mail and webhooks end: on a page, so that a visitor sees what would have been sent."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.db.models import QuerySet
from django.utils import timezone

from portal.accounts.models import User
from portal.boundary.outgoing import OutgoingError
from portal.notices.models import Arrival, Way, Webhook
from portal.notices.webhooks import secret_of
from portal.notices.wording import signature

KEPT = 500
HEADERS = ("Weir-Delivery", "Weir-Timestamp", "Weir-Signature")


class MailBackend(BaseEmailBackend):
    """Keeps each message for the people it is addressed to."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        return sum(map(_keep_mail, email_messages))


def _keep_mail(message: EmailMessage) -> int:
    for user in User.objects.filter(email__in=message.to).exclude(email=""):
        keep(
            user, Way.MAIL, to=user.email, subject=str(message.subject), body=str(message.body),
            headers={"From": message.from_email, **message.extra_headers},
        )  # fmt: skip
    return 1


def take(headers: Mapping[str, str], body: bytes) -> bool:
    """The receiver of a demo's webhooks: whether it was signed as it says, which is when it is kept."""
    number = headers.get("Weir-Webhook", "")
    known = number.isdecimal() and len(number) < 19
    webhook = (
        Webhook.objects.select_related("user").filter(pk=int(number)).first() if known else None
    )
    if webhook is None:
        return False
    try:
        right = signature(secret_of(webhook), headers.get("Weir-Timestamp", ""), body)
    except OutgoingError:
        return False
    if not hmac.compare_digest(right.encode(), headers.get("Weir-Signature", "").encode()):
        return False
    keep(
        webhook.user, Way.WEBHOOK, to=webhook.name, body=body.decode(errors="replace"),
        headers={name: headers.get(name, "") for name in HEADERS},
    )  # fmt: skip
    return True


def keep(
    user: User, way: Way, *, to: str, body: str, headers: dict[str, Any], subject: str = ""
) -> None:
    Arrival.objects.create(
        user=user, way=way, at=timezone.now(), to=to[:500], subject=subject[:300], body=body, headers=headers
    )  # fmt: skip
    old = Arrival.objects.filter(user=user).order_by("-pk").values_list("pk", flat=True)[KEPT:]
    Arrival.objects.filter(pk__in=list(old)).delete()


def of(user: User) -> QuerySet[Arrival]:
    """What was sent to the person, the newest first."""
    return Arrival.objects.filter(user=user)
