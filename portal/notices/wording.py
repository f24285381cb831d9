"""What stands in a letter: the same notices as text for mail and as JSON for a webhook, and its signature."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

import orjson
from django.conf import settings

from portal.notices.models import Letter, Notice

TEST = "This is a test from Weir. Notices arrive here."
FOOT = "You chose to be told of this by mail. Your choice of notices and times:"


def address_of(path: str) -> str:
    """The whole address; empty where the installation's own is not set."""
    return f"{settings.WEIR_ADDRESS}{path}" if settings.WEIR_ADDRESS and path else ""


def subject(notices: Sequence[Notice]) -> str:
    """One line, whatever names hold."""
    if not notices:
        return "Weir: test"
    said = notices[0].title if len(notices) == 1 else f"Weir: {len(notices)} notices"
    return " ".join(said.split())


def mail_text(notices: Sequence[Notice]) -> str:
    parts = [_paragraph(one) for one in notices] or [TEST]
    if where := address_of("/notices/"):
        parts.append(f"{FOOT} {where}")
    return "\n\n".join(parts) + "\n"


def _paragraph(notice: Notice) -> str:
    lines = [notice.title, *(f"{word}: {sentence}" for word, sentence in notice.lines)]
    return "\n".join(filter(None, [*lines, address_of(notice.address)]))


def payload(letter: Letter, notices: Sequence[Notice]) -> bytes:
    """What Slack shows, and the same in fields for programs."""
    text = "\n\n".join(map(_paragraph, notices)) or TEST
    return orjson.dumps(
        {"text": _escaped(text), "delivery": letter.pk, "notices": list(map(_fields, notices))}
    )


def _fields(notice: Notice) -> dict[str, Any]:
    return {
        "id": notice.pk,
        "kind": notice.kind,
        "at": notice.at.isoformat(),
        "cluster": notice.cluster.name,
        "about": notice.about,
        "title": notice.title,
        "lines": [{"word": word, "sentence": sentence} for word, sentence in notice.lines],
        "address": address_of(notice.address),
    }


def _escaped(text: str) -> str:
    """Slack reads <…> as links and as calls of a whole channel: what people wrote must be neither."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Of ``TIMESTAMP.BODY``, so that an old message can't be sent again as a new one."""
    made = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"v1={made.hexdigest()}"
