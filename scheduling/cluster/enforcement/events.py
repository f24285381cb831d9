"""Events on the objects that hold work: what ``kubectl describe`` shows at its end.

Written as core/v1, which every version reads back under events.k8s.io as well. Each is made once under a
name that follows from what it says, so there is no counter to update and no storm of writes.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from scheduling.cluster.adapters.base import Sighting
from scheduling.cluster.connection.client import Client, ConflictError, NotFoundError
from scheduling.cluster.connection.rate import Allowance

SOURCE = "weir"
EVENTS_AT_ONCE, EVENTS_PER_S = 200, 20.0
HURRIED_PER_S = 4.0
"""The same while cycles follow each other: an API server that is busy with acts makes each Event at the
expense of one."""
UNSAID = 1000
"""Events that may wait for their turn; of more the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something said about ``target`` once. ``once`` tells two occurrences of one reason apart, so that
    a repeated write (after a fault, by another worker) finds the Event there already."""

    target: Sighting
    api_version: str
    reason: str
    message: str
    at: datetime
    once: str
    warning: bool = False

    @property
    def name(self) -> str:
        digest = hashlib.sha256(f"{self.target.uid} {self.reason} {self.once}".encode())
        return f"{self.target.name[:200]}.{digest.hexdigest()[:16]}"


class Voice:
    """Events that wait until they may be posted: what they tell of has been done, and doing goes first."""

    def __init__(self) -> None:
        self._unsaid: deque[Event] = deque(maxlen=UNSAID)
        self._allowance = Allowance(EVENTS_PER_S, EVENTS_AT_ONCE)
        self._hurried = Allowance(HURRIED_PER_S, EVENTS_AT_ONCE)

    def add(self, events: Iterable[Event]) -> None:
        """Safe to call from many threads."""
        self._unsaid.extend(events)

    def take(self, most: int, *, hurried: bool = False) -> list[Event]:
        """The oldest that may be posted now, at most so many; they are forgotten here.

        A few are posted even when ``hurried``; of more, so many at a time and at a lower rate.
        """
        number = min(most, self._allowance.left(), len(self._unsaid))
        # By how many wait: cycles that follow each other find but a few allowed each time.
        if hurried and len(self._unsaid) >= most:
            number = most if min(number, self._hurried.left()) >= most else 0
            self._hurried.spend(number)
        self._allowance.spend(number)
        return [self._unsaid.popleft() for _ in range(number)]


def post(client: Client, event: Event) -> None:
    """Create the Event unless it stands there. Raises ApiError; a namespace that is gone is no fault."""
    target = event.target
    stamp = event.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event.name, "namespace": target.namespace},
        "involvedObject": {
            "apiVersion": event.api_version,
            "kind": target.kind,
            "namespace": target.namespace,
            "name": target.name,
            "uid": target.uid,
        },
        "reason": event.reason,
        "message": event.message[:1024],
        "type": "Warning" if event.warning else "Normal",
        "source": {"component": SOURCE},
        "reportingComponent": SOURCE,
        "reportingInstance": SOURCE,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
    try:
        client.create(f"/api/v1/namespaces/{target.namespace}/events", body)
    except (ConflictError, NotFoundError):
        return
