"""A web server from the message that it begins to the one that it ends."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from portal.config import lifespan
from scheduling.services.worker import hearts


def messages(monkeypatch: pytest.MonkeyPatch, sent: list[Any]) -> None:
    """Run a server's life through ``living``, without a heart that outlasts the test."""
    monkeypatch.setattr(hearts, "begin", lambda role: None)
    monkeypatch.setattr(lifespan, "_leave", lambda: None)
    asked = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> Any:
        return next(asked)

    async def send(message: Any) -> None:
        sent.append((message["type"], gc.get_freeze_count()))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("a life is no request")

    asyncio.run(lifespan.living(app)({"type": "lifespan"}, receive, send))


def test_what_is_loaded_is_left_out_of_collections_before_the_first_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[Any] = []
    gc.unfreeze()
    try:
        messages(monkeypatch, sent)
    finally:
        gc.unfreeze()

    (begun, frozen), (ended, _) = sent
    assert (begun, ended) == ("lifespan.startup.complete", "lifespan.shutdown.complete")
    assert frozen > 10_000
