"""Sign-ins, refusals and acts of tokens: one line of JSON an event, and an announcement.

Never a password, a token or a session's key. JSON in ASCII escapes what would begin a new line or
act on a terminal, so a name cannot forge an entry.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request

from portal.accounts.models import User
from scheduling.services.events import announce

log = logging.getLogger("weir.security")


def record(
    event: str,
    request: HttpRequest | Request | None,
    *,
    user: User | None,
    refused: bool = False,
    **facts: Any,
) -> None:
    """``event`` is noun.verb, ``user`` whom it is about; None where nobody is known, or asked."""
    line = {
        "event": event,
        "user": user.get_username() if user else None,
        "address": request.META.get("REMOTE_ADDR", "") if request is not None else None,
        **facts,
    }
    after = json.loads(json.dumps(facts, default=str))
    announce(event, actor=user, subject=str(user or ""), after=after or None, refused=refused)
    log.log(logging.WARNING if refused else logging.INFO, "%s", json.dumps(line, default=str))


def person_named(name: str) -> User | None:
    """The person of a typed name, for the log; a name that is nobody's may be a password."""
    return User.objects.filter(username=name).first()
