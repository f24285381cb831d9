"""Since when gangs are below their least members, and which of them have been for too long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

from scheduling.cluster.adapters import Observed
from scheduling.models import State, Workload

UNSEEN_PODS_S = 300.0
"""Wall seconds an admitted gang gets to start its pods (images are pulled then) before it is stale."""
SETTLE_S = 5.0
"""Wall seconds a gang has to stay below its least members before the engine hears of it: a cluster
whose clock runs fast restarts pods no faster."""


class Missing:
    """What one process saw of it, by uid."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[datetime, float]] = {}
        """Cluster time and monotonic time since when members are missing."""
        self._holding: set[str] = set()
        """Those that held GPUs when they were looked at last."""

    def forget(self, uid: str) -> None:
        self._since.pop(uid, None)

    def late(
        self,
        holding: list[tuple[Workload, Observed]],
        *,
        now: datetime,
        grace_s: int,
        speed: float,
    ) -> Iterator[tuple[str, datetime]]:
        """Those of ``holding`` (all that hold GPUs) that are below their least members for longer than the
        grace, with the time since when. ``speed`` is that of the cluster's clock.

        Until then one stands as it was admitted, so that nobody is let in on the quota it still has.
        """
        tick = time.monotonic()
        short = {
            seen.uid: self._since.get(seen.uid) or self._begin(row, seen, now, speed)
            for row, seen in holding
            if seen.is_short
        }
        self._since, self._holding = short, {seen.uid for _, seen in holding}
        for row, seen in holding:
            since, began = short.get(seen.uid, (now, tick))
            patience_s = SETTLE_S if row.state == State.RUNNING else UNSEEN_PODS_S
            is_past = (now - since).total_seconds() >= grace_s and tick - began >= patience_s
            if seen.uid in short and is_past:
                yield seen.uid, since

    def _begin(
        self, row: Workload, seen: Observed, now: datetime, speed: float
    ) -> tuple[datetime, float]:
        """Now, but for a gang whose start nobody here saw: it has had its time since its admission, whoever
        watched it then."""
        tick = time.monotonic()
        if seen.uid in self._holding or row.state == State.RUNNING or seen.admitted is None:
            return now, tick
        since = min(seen.admitted, now)
        return since, tick - (now - since).total_seconds() / speed
