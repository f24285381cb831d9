"""Tokens of Weir's own accounts: whose they are, when they end, and how new ones are made."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from kubernetes.config.incluster_config import SERVICE_TOKEN_FILENAME

from scheduling.models import Cluster
from scheduling.models.credentials import is_kept, read
from scheduling.services.errors import ServiceError

LONGEST = timedelta(days=90)
SOON = timedelta(days=7)
LIFE = "720h"
ENGINE, PORTAL = "weir-engine", "weir-portal"


def made_by(account: str) -> str:
    """The command that makes a token of ``account``."""
    return f"kubectl -n weir-system create token {account} --duration {LIFE}"


def ends_at(token: str) -> datetime | None:
    """When a token of a service account ends by itself; None where it does not say."""
    try:
        return datetime.fromtimestamp(int(_claims(token)["exp"]), UTC)
    except (ValueError, KeyError, TypeError, OverflowError, OSError):
        return None


def account_of_pod() -> str:
    """The service account of the pod that this process runs in; empty where it runs in none."""
    name: object = _claims(_text(SERVICE_TOKEN_FILENAME)).get("sub", "")
    return str(name).rpartition(":")[2]


def _claims(token: str) -> dict[str, Any]:
    parts = token.strip().split(".")
    if len(parts) != 3:
        return {}
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def check(token: str, account: str, field: str) -> None:
    """Raises ServiceError at ``field`` for a token of Kubernetes that works for longer than LONGEST: who
    copies it has the cluster for as long."""
    ends = ends_at(token)
    if ends is None and token.count(".") != 2:
        return
    if ends is None or ends > timezone.now() + LONGEST:
        term = "does not end" if ends is None else f"works until {ends:%Y-%m-%d}"
        raise ServiceError(
            "long_token",
            f"This token {term}. Weir takes tokens of {LONGEST.days} days at most.",
            f"Make another: {made_by(account)}",
            field=field,
        )


@dataclass(frozen=True, slots=True)
class Ending:
    account: str
    at: datetime
    renewal: str
    """The command that writes a new one where Weir reads it."""


def ending(cluster: Cluster, now: datetime) -> Iterator[Ending]:
    """Those of its tokens that end soon, or have ended."""
    for account, column in ((ENGINE, "token_file"), (PORTAL, "portal_token_file")):
        place = getattr(cluster, column)
        ends = ends_at(_text(place)) if place else None
        if ends is not None and ends < now + SOON:
            yield Ending(account, ends, _renewal(cluster, account, column, place))


def _renewal(cluster: Cluster, account: str, column: str, place: str) -> str:
    if not is_kept(place):
        return f"{made_by(account)} > {place}"
    option = f"--{column.replace('_', '-')}"
    return (
        f"{made_by(account)} > token && python manage.py cluster keep {cluster.name} {option} token"
    )


def _text(place: str) -> str:
    try:
        return read(place)
    except OSError:
        return ""
