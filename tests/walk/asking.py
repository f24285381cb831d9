"""Asking an address, and what came back."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction

from portal.web.frame.revision_cache import remembered
from tests.walk.world import World

PLANNED: list[str] = []
"""What planned in this process; see ``conftest.planning``."""


@dataclass(frozen=True)
class Answer:
    """``expected`` is what the address's row says of the person: one of the words of ``checkers.STATUS``, or
    empty where no row says anything."""

    name: str
    who: str
    method: str
    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    payload: Any = None
    sent: Mapping[str, str] = field(default_factory=dict)
    expected: str = ""
    planned: tuple[str, ...] = ()
    """What planned, or read the cluster for a plan, before it answered."""
    twin: int | None = None
    """The status of the same about what does not exist, where it was asked."""

    @property
    def typed(self) -> str:
        return f"{self.url} {self.payload}"

    def __str__(self) -> str:
        more = f" {self.payload}"[:80] if self.payload else ""
        return (
            f"{self.method} {self.url}{more} {dict(self.sent) or ''} as {self.who}: {self.status}"
        )


def ask(
    world: World,
    who: str,
    method: str,
    name: str,
    url: str,
    payload: Any = None,
    expected: str = "",
    **sent: str,
) -> Answer:
    """The answer; what it wrote is undone."""
    client, before = world.client(who), len(PLANNED)
    with undone(method):
        if url.startswith(("/api/", "/scim/")) and method != "GET":
            text = json.dumps({} if payload is None else payload)
            response = client.generic(method, url, text, content_type="application/json", **sent)
        elif method == "POST":
            response = client.post(url, payload or {}, **sent)
        else:
            response = client.generic(method, url, **sent)
        came = body(response)
    planned = tuple(PLANNED[before:])
    return Answer(
        name, who, method, url, response.status_code, response.headers, came, payload, sent, expected,
        planned,
    )  # fmt: skip


@contextmanager
def undone(method: str) -> Iterator[None]:
    """What is written inside is undone, and what was remembered of it forgotten."""
    known = OrderedDict(remembered._slots) if method != "GET" else None
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    if known is not None:
        remembered._slots.clear()
        remembered._slots.update(known)


def body(response: Any) -> bytes:
    """What came back; a stream of events is left alone."""
    kind = response.headers.get("Content-Type", "")
    if kind.startswith("text/event-stream"):
        return b""
    return b"".join(response) if response.streaming else response.content


@contextmanager
def one_connection() -> Iterator[None]:
    """A server closes its connections after a request; the one whose transaction is undone must live on."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def own_words(text: bytes, typed: str) -> bytes:
    """``text`` without what the person typed."""
    words = set(re.findall(r"[\w-]*(?:zebra|quokka|okapi)[\w-]*", typed))
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word.encode(), b"")
    return text
