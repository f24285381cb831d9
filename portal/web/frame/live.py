"""Server-sent events: a page learns that its cluster has changed.

One reader per process asks the database, whatever the number of open tabs: it reads the revisions of
all watched clusters in one query twice a second and hands changes to the tabs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError, close_old_connections
from django.db.models import OuterRef, Subquery
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.utils import timezone

from portal.boundary.limits import Slot
from portal.display.format import number
from portal.web.frame.requests import page_view
from portal.web.frame.shell import get_cluster
from scheduling.models import Cluster, Cycle

PERIOD_S = 0.5
HEARTBEAT_S = 15.0
RETRY_S = 30
LIFETIME_S = 600.0
"""A stream ends after this; the browser connects again and is authorised anew."""


@dataclass(frozen=True)
class Pulse:
    """What a page compares: it refreshes when ``revision`` differs, and is stale by the age."""

    revision: int
    planned_age_s: float | None
    cycle: str

    def is_news_after(self, last: Pulse | None) -> bool:
        if last is None or (self.revision, self.cycle) != (last.revision, last.cycle):
            return True
        if self.planned_age_s is None or last.planned_age_s is None:
            return self.planned_age_s is not last.planned_age_s
        return self.planned_age_s < last.planned_age_s


def read(cluster_ids: list[int]) -> dict[int, Pulse]:
    """The pulse of each cluster. One query."""
    newest = Cycle.objects.filter(cluster=OuterRef("pk")).order_by("-number")
    rows = Cluster.objects.filter(pk__in=cluster_ids).values_list(
        "pk",
        "revision",
        "planned_at",
        Subquery(newest.values("number")[:1]),
        Subquery(newest.values("took_ms")[:1]),
    )
    now = timezone.now()
    return {
        pk: Pulse(
            revision=revision,
            planned_age_s=None if planned is None else (now - planned).total_seconds(),
            cycle="" if cycle is None else f"cycle {number(cycle)} took {took_ms / 1000:.2f} s",
        )
        for pk, revision, planned, cycle, took_ms in rows
    }


def _read_in_thread(cluster_ids: list[int]) -> dict[int, Pulse]:
    try:
        return read(cluster_ids)
    finally:
        close_old_connections()


class Reader:
    """The one reader of an event loop. It runs while somebody listens."""

    def __init__(self) -> None:
        self.listeners: dict[int, set[asyncio.Queue[Pulse]]] = defaultdict(set)
        self.task: asyncio.Task[None] | None = None

    def listen(self, cluster_id: int) -> asyncio.Queue[Pulse]:
        queue: asyncio.Queue[Pulse] = asyncio.Queue(maxsize=1)
        self.listeners[cluster_id].add(queue)
        if self.task is None or self.task.done():
            self.task = asyncio.ensure_future(self._run())
        return queue

    def leave(self, cluster_id: int, queue: asyncio.Queue[Pulse]) -> None:
        self.listeners[cluster_id].discard(queue)
        if not self.listeners[cluster_id]:
            del self.listeners[cluster_id]

    async def _run(self) -> None:
        while self.listeners:
            # A database that is away for a moment makes pages stale, it does not end their streams.
            with contextlib.suppress(DatabaseError):
                self._tell(
                    await sync_to_async(_read_in_thread, thread_sensitive=False)(
                        list(self.listeners)
                    )
                )
            await asyncio.sleep(PERIOD_S)

    def _tell(self, pulses: dict[int, Pulse]) -> None:
        for cluster_id, pulse in pulses.items():
            for queue in self.listeners.get(cluster_id, ()):
                _replace(queue, pulse)


def _replace(queue: asyncio.Queue[Pulse], pulse: Pulse) -> None:
    """Only the newest counts: a slow tab skips what it missed."""
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(pulse)


_readers: WeakKeyDictionary[asyncio.AbstractEventLoop, Reader] = WeakKeyDictionary()


def reader() -> Reader:
    return _readers.setdefault(asyncio.get_running_loop(), Reader())


async def stream(cluster_id: int) -> AsyncIterator[str]:
    """Events of one tab: ``plan`` when something changed, a comment when nothing did for a while."""
    # The request's own connection has authorised it and would stay open as long as the tab.
    await sync_to_async(close_old_connections)()
    listening = reader()
    queue = listening.listen(cluster_id)
    loop = asyncio.get_running_loop()
    ends, beat, last = loop.time() + LIFETIME_S, loop.time(), None
    try:
        yield "retry: 2000\n\n"
        while loop.time() < ends:
            pulse = await queue.get()
            if pulse.is_news_after(last):
                yield f"event: plan\ndata: {json.dumps(asdict(pulse))}\n\n"
                beat = loop.time()
            elif loop.time() - beat > HEARTBEAT_S:
                yield ": still here\n\n"
                beat = loop.time()
            last = pulse
    finally:
        listening.leave(cluster_id, queue)


async def _holding(slot: Slot, events: AsyncIterator[str]) -> AsyncIterator[str]:
    """``events``, with the person's place among the streams given back at the end."""
    try:
        async for event in events:
            yield event
    finally:
        await sync_to_async(slot.free)()


def _too_many() -> JsonResponse:
    """The page polls meanwhile and asks for a stream again."""
    sentence = f"You have {settings.WEIR_LIVE_STREAMS} live pages open."
    remedy = "Close some of them, or poll with ?once=1."
    return JsonResponse(
        {"code": "too_many_streams", "sentence": sentence, "remedy": remedy},
        status=429,
        headers={"Retry-After": str(RETRY_S)},
    )


@page_view
def live(request: HttpRequest, cluster: str) -> HttpResponseBase:
    """The stream, or with ``?once=1`` its newest state as JSON for browsers that poll."""
    found = get_cluster(request, cluster)
    if request.GET.get("once"):
        return JsonResponse(asdict(read([found.pk])[found.pk]))
    if not isinstance(request, ASGIRequest):
        # A synchronous server would give one of its threads away for good: the page polls instead.
        return HttpResponse(status=204)
    slot = Slot.take(f"live:{request.user.pk}", settings.WEIR_LIVE_STREAMS, LIFETIME_S + RETRY_S)
    if slot is None:
        return _too_many()
    return StreamingHttpResponse(
        _holding(slot, stream(found.pk)),
        content_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )
