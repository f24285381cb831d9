"""What somebody typed before their session had to prove itself: kept with the session, on the server."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest

KEY = "weir_typed"
MOST = 64 * 1024
"""Characters of one form: a session is read with every request."""
HIDDEN = ("csrfmiddlewaretoken",)


@dataclass(frozen=True, slots=True)
class TypedForm:
    """A form for the address ``path``, field by field as it was sent."""

    path: str
    fields: tuple[tuple[str, str], ...]

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Those that say something, by names as people read them."""
        said = ((name.replace("_", " "), value) for name, value in self.fields if value)
        return [(name[:1].upper() + name[1:], value) for name, value in said]


def keep(request: HttpRequest) -> None:
    """In place of what was kept before; what is too long for that is typed again."""
    fields = [(n, v) for n, values in request.POST.lists() if n not in HIDDEN for v in values]
    if sum(len(name) + len(value) for name, value in fields) > MOST:
        drop(request)
        return
    facts = {"path": request.path, "fields": fields, "user": request.user.pk, "at": time.time()}
    request.session[KEY] = facts


def kept_by(request: HttpRequest) -> TypedForm | None:
    """What this session's person typed in the last minutes."""
    facts: dict[str, Any] = request.session.get(KEY) or {}
    since = time.time() - settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
    if facts.get("user") != request.user.pk or facts["at"] < since:
        return None
    return TypedForm(facts["path"], tuple((name, value) for name, value in facts["fields"]))


def drop(request: HttpRequest) -> None:
    request.session.pop(KEY, None)
