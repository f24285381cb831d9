"""Admins are told where a stream out of Weir has failed for a while, once a failure, and when it goes on.

Rules look at clusters; streams are of the installation. A notice stands at a cluster, and what concerns all
stands at the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.display.format import counted
from portal.notices.models import Kind, Notice
from portal.notices.outbox import tell
from portal.streams.standing import StreamStanding, standings
from portal.streams.targets import configured
from portal.teams.memberships import administrators
from scheduling.models import Cluster

PATIENCE = timedelta(minutes=10)
"""A target that is started anew is away for less."""
OVER = " over"


def look() -> None:
    cluster = Cluster.objects.order_by("pk").first() if configured() else None
    if cluster is None:
        return
    now = timezone.now()
    for stream in standings(now):
        if _has_failed(stream, now):
            _tell_failed(stream, cluster, now)
        elif not stream.fault:
            _tell_over(stream, cluster)


def _has_failed(stream: StreamStanding, now: datetime) -> bool:
    since = stream.failing_since
    return since is not None and now - since >= PATIENCE


def _tell_failed(stream: StreamStanding, cluster: Cluster, now: datetime) -> None:
    assert stream.failing_since is not None  # noqa: S101 - narrows what _has_failed made sure
    title = (
        f"{stream.label} have not gone out to {stream.where} since"
        f" {stream.failing_since:%F %R} UTC; {counted(stream.waiting, 'record waits,records wait')}."
    )
    lines = [["Why", stream.fault], ["Lost", "Nothing: what waits goes out once it is taken."]]
    source = f"{_of(stream)}{stream.failing_since.timestamp():.0f}"
    _tell(stream, cluster, administrators(), source, title, lines)


def _tell_over(stream: StreamStanding, cluster: Cluster) -> None:
    """To whom was told that it fails."""
    notices = Notice.objects.filter(kind=Kind.ALERT, source__startswith=_of(stream))
    last = notices.order_by("-pk").first()
    if last is None or last.source.endswith(OVER):
        return
    people = User.objects.filter(notices__source=last.source)
    title = f"{stream.label} go out to {stream.where} again."
    _tell(stream, cluster, people, f"{last.source}{OVER}", title, [])


def _tell(
    stream: StreamStanding,
    cluster: Cluster,
    people: Iterable[User],
    source: str,
    title: str,
    lines: list[list[str]],
) -> None:
    for user in people:
        tell(
            user, Kind.ALERT, cluster, source=source, about=f"Stream {stream.name}", title=title,
            lines=lines, address=reverse("web:cluster", args=[cluster.name]),
        )  # fmt: skip


def _of(stream: StreamStanding) -> str:
    return f"stream {stream.name} "
