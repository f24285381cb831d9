"""Since when gangs are below their least members, and which of them have been for too long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from scheduling.cluster.adapters import Sighting
from scheduling.models import State, Workload
from scheduling.services.cycle.changes import Changes, assign

UNSEEN_PODS_S = 300.0
"""Wall seconds an admitted gang, or a stage of it whose turn has come, gets to start its pods (images are
pulled then) before it is stale."""
UNPLACED_S = 30.0
"""The same where kube-scheduler says that it has no node for one of the pods."""
SETTLE_S = 5.0
"""Wall seconds a gang has to stay below its least members before the engine hears of it: a cluster
whose clock runs fast restarts pods no faster."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Since when members are missing, by the cluster's clock and by this process's (monotonic seconds)."""

    since: datetime
    began: float
    is_start: bool
    """The missing ones have not been up yet since its admission."""


def _noted(row: Workload, seen: Sighting) -> datetime | None:
    """Since when its row says that members are missing, if that is of this admission."""
    since = row.short_since
    return since if since and seen.admitted and since >= seen.admitted else None


class MissingMembers:
    """What one process saw of it, by uid."""

    def __init__(self) -> None:
        self._lacks: dict[str, Lack] = {}
        self._undue: dict[str, int] = {}
        """Of those that held GPUs when they were looked at last: members that could not have begun."""

    def forget(self, uid: str) -> None:
        self._lacks.pop(uid, None)

    def late(
        self,
        holding: list[tuple[Workload, Sighting]],
        changes: Changes,
        *,
        now: datetime,
        grace_s: int,
        speed: float,
    ) -> Iterator[tuple[str, Lack]]:
        """Those of ``holding`` (all that hold GPUs) that are below their least members for longer than the
        grace. ``speed`` is that of the cluster's clock.

        Until then one stands as it was admitted, so that nobody is let in on the quota it still has. For a
        later process ``changes`` tells of stages, whose turn is written nowhere else. One whose pods the API
        server refuses does not wait for the grace: no waiting of its own makes room for them.
        """
        self._lacks = {
            seen.uid: self._lack(row, seen, now, speed) for row, seen in holding if seen.is_short
        }
        self._undue = {seen.uid: seen.undue for _, seen in holding}
        for row, seen in holding:
            if seen.staged:
                lack = self._lacks.get(seen.uid)
                assign(row, {"short_since": lack.since if lack else None}, changes)
        tick = time.monotonic()
        unplaced = {seen.uid for _, seen in holding if seen.unplaced}
        unmade = {seen.uid for _, seen in holding if seen.unmade}
        for uid, lack in self._lacks.items():
            if uid in unmade and tick - lack.began >= SETTLE_S:
                limit = now - timedelta(seconds=grace_s)
                yield uid, replace(lack, since=min(lack.since, limit))
                continue
            start_s = UNPLACED_S if uid in unplaced else UNSEEN_PODS_S
            patience_s = start_s if lack.is_start else SETTLE_S
            if (now - lack.since).total_seconds() >= grace_s and tick - lack.began >= patience_s:
                yield uid, lack

    def _lack(self, row: Workload, seen: Sighting, now: datetime, speed: float) -> Lack:
        """Since now, unless it is known from before. A gang whose start nobody here saw has had its time
        since its admission, or the turn of its last stage, whoever watched it then.
        Once a member is lost, no patience with a start brings it back.
        """
        tick, before = time.monotonic(), self._undue.get(seen.uid)
        if before is None and seen.staged:
            since = min(_noted(row, seen) or now, now)
            return Lack(since, tick - (now - since).total_seconds() / speed, not seen.lost)
        if seen.undue < (before or 0):
            return Lack(now, tick, is_start=True)
        lack = self._lacks.get(seen.uid)
        if lack and not (lack.is_start and seen.lost):
            return lack
        is_start = row.state != State.RUNNING and not seen.lost
        if lack or before is not None or not is_start or seen.admitted is None:
            return Lack(now, tick, is_start)
        since = min(seen.admitted, now)
        return Lack(since, tick - (now - since).total_seconds() / speed, is_start)
