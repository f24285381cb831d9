"""The web server's answers to whoever looks after it, and how long its other answers take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from portal.config.own_metrics import Weir
from scheduling.services.worker.probes import PATHS, ProbeAnswer, answer

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]
BUCKETS = (0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)


class Answers(Collector):
    """Of this process alone: where several serve one port, each scrape tells of one of them."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._count = Counter(
            "weir_http_answers", "By the first digit of their status.", ("status",),
            registry=self._registry,
        )  # fmt: skip
        self._took = Histogram(
            "weir_http_answer_seconds", "Until an answer began.",
            buckets=BUCKETS, registry=self._registry,
        )  # fmt: skip

    def collect(self) -> Iterator[Metric]:
        yield from self._registry.collect()

    def note(self, status: int, seconds: float) -> None:
        self._count.labels(f"{status // 100}xx").inc()
        self._took.observe(seconds)


answers = Answers()


def probed(app: App) -> App:
    """``app`` (ASGI), which hears of no probe."""

    async def serve(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
        elif scope["path"] in PATHS and scope["method"] in ("GET", "HEAD"):
            found = await asyncio.to_thread(
                answer, scope["path"], _authorization(scope), (answers, Weir())
            )
            await _send(send, found)
        else:
            await app(scope, receive, _noting(send))

    return serve


def _authorization(scope: Any) -> str:
    given = (value for name, value in scope["headers"] if name.lower() == b"authorization")
    return next(given, b"").decode("latin-1")


def _noting(send: Send) -> Send:
    began = time.perf_counter()

    async def note(message: Message) -> None:
        if message["type"] == "http.response.start":
            answers.note(message["status"], time.perf_counter() - began)
        await send(message)

    return note


async def _send(send: Send, found: ProbeAnswer) -> None:
    headers = [
        (b"content-type", found.kind.encode()),
        (b"content-length", str(len(found.body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": found.status, "headers": headers})
    await send({"type": "http.response.body", "body": found.body})
