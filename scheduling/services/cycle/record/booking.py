"""Use of GPUs, integrated over time: minute samples and decayed usage.

Between two cycles the division of the earlier one holds, so each cycle books the span since the last
one with the shares that stand in the rows. Spans in which nobody looked are left out; ``seconds`` of
a sample says how much of its minute was seen.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduling.models import Cluster, Share, UsageSample, Workload
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.rollup import MEANS, floor_minute
from scheduling.services.queues import user_usage
from scheduling.services.queues.rows import Key, PolicyRows

MINUTE_S = 60
FEW = 200
"""Samples that are written with every cycle."""
WRITTEN_EVERY_S = 5.0
"""Wall seconds between two writes of more than that; a worker that is killed loses as much of a minute."""
UNSEEN_CYCLES = 12
"""A span longer than so many cycle intervals (wall time) was not watched: Weir was down."""


@dataclass(slots=True)
class Ledger:
    """Open minutes of one cluster, and the cluster time up to which it is booked."""

    cluster: Cluster
    booked_to: datetime | None = None
    users_to: datetime | None = None
    """The same for users."""
    _open: dict[tuple[Key, datetime], UsageSample] = field(default_factory=dict, init=False)
    _unwritten: dict[tuple[Key, datetime], UsageSample] = field(default_factory=dict, init=False)
    _written_at: float = field(default=float("-inf"), init=False)

    def usage(self, rows: PolicyRows, *, now: datetime) -> dict[Key, float]:
        """The decayed usage at ``now``."""
        return usage_at(rows, since=self.booked_to or now, now=now)

    def book(self, rows: PolicyRows, workloads: Iterable[Workload], *, now: datetime) -> None:
        """Book the span up to ``now`` with the shares of the last cycle, as ``rows`` holds them, and
        once a minute what the users of ``workloads`` hold.

        Writes the minutes it touched, in the caller's transaction: those of a cluster with many queues
        once they are over, and every few seconds until then.
        """
        then = self.users_to
        if then is None or user_usage.move_on(self.cluster, workloads, since=then, now=now):
            self.users_to = now
        since = self.booked_to
        self.booked_to = now
        if since is not None and 0 < (now - since).total_seconds() <= self._watched_s():
            self._book_minutes(rows.shares, rows, since, now)

    def _watched_s(self) -> float:
        interval_s = max(self.cluster.cycle_interval_s, 5.0)
        return interval_s * UNSEEN_CYCLES * max(1.0, self.cluster.clock_speed)

    def _book_minutes(
        self, shares: Sequence[Share], rows: PolicyRows, since: datetime, now: datetime
    ) -> None:
        if not self._open:
            self._reopen(floor_minute(since))
        root_pk = rows.root.pk if rows.root else None
        for start, seconds in minutes_between(since, now):
            for share in shares:
                key = (share.queue_id, share.gpu_class_id)
                sample = self._unwritten[key, start] = self._sample(key, start)
                add(sample, _means(share, is_root=share.queue_id == root_pk), seconds)
        newest = floor_minute(now)
        self._write(newest, {(share.queue_id, share.gpu_class_id) for share in shares})
        self._open = {key: s for key, s in self._open.items() if key[1] >= newest}

    def _write(self, newest: datetime, alive: Container[Key]) -> None:
        """Write what is due, of queues that are ``alive``; minutes before ``newest`` are over, and due."""
        tick = time.monotonic()
        over = any(start < newest for _, start in self._unwritten)
        if not over and len(self._unwritten) > FEW and tick - self._written_at < WRITTEN_EVERY_S:
            return
        UsageSample.objects.bulk_create(
            [sample for (key, _), sample in self._unwritten.items() if key in alive],
            update_conflicts=True,
            unique_fields=["queue", "gpu_class", "resolution", "start"],
            update_fields=["seconds", *MEANS],
            batch_size=200,
        )
        self._unwritten, self._written_at = {}, tick

    def _reopen(self, start: datetime) -> None:
        """Take up the minutes that a worker before us began."""
        found = UsageSample.objects.filter(
            queue__cluster=self.cluster, resolution=Resolution.MINUTE, start__gte=start
        )
        for sample in found:
            key = (sample.queue_id, sample.gpu_class_id)
            self._open[key, sample.start] = _exact(sample)

    def _sample(self, key: Key, start: datetime) -> UsageSample:
        """The open sample of a minute, an empty one if it has none."""
        if (key, start) not in self._open:
            empty = UsageSample(
                queue_id=key[0],
                gpu_class_id=key[1],
                resolution=Resolution.MINUTE,
                start=start,
                seconds=0,
            )
            self._open[key, start] = _exact(empty)
        return self._open[key, start]


def _exact(sample: UsageSample) -> UsageSample:
    """Columns hold whole seconds; spans between cycles are shorter than one."""
    sample.exact_seconds = float(sample.seconds)  # type: ignore[attr-defined] # not a column
    return sample


def minutes_between(since: datetime, now: datetime) -> Iterator[tuple[datetime, float]]:
    """(start of the minute, seconds of it) for every minute that [since, now) touches."""
    while since < now:
        start = floor_minute(since)
        end = min(now, start + timedelta(seconds=MINUTE_S))
        yield start, (end - since).total_seconds()
        since = end


def add(sample: UsageSample, means: dict[str, float], seconds: float) -> None:
    """Fold ``means`` that held for ``seconds`` into the time means of ``sample``."""
    before = sample.exact_seconds  # type: ignore[attr-defined] # set by _exact
    total = before + seconds
    for name, value in means.items():
        setattr(sample, name, (getattr(sample, name) * before + value * seconds) / total)
    sample.exact_seconds = total  # type: ignore[attr-defined] # set by _exact
    sample.seconds = min(MINUTE_S, max(1, round(total)))


def _means(share: Share, *, is_root: bool) -> dict[str, float]:
    """The root's share is the cluster: its nominal is installed, its fair share ready capacity."""
    return {
        "installed_gpus": float(share.nominal) if is_root else 0.0,
        "ready_gpus": share.fair_share if is_root else 0.0,
        "allocated_gpus": float(share.allocated),
        "nominal_gpus": float(share.nominal),
        "fair_share_gpus": share.fair_share,
        "pending_gpus": float(share.pending),
    }


def usage_at(rows: PolicyRows, *, since: datetime, now: datetime) -> dict[Key, float]:
    """Decayed usage as a share of the class's capacity, moved on from ``since`` to ``now``.

    u(now) = u(since) * d + held / capacity * (1 - d) with d = 2^(-span / half-life): the exponential
    mean of what was held (DESIGN 3.1 step 4).
    """
    half_life_s = max(1, rows.cluster.usage_half_life_s)
    decay: float = 2.0 ** (-(now - since).total_seconds() / half_life_s)
    if now < since:
        return dict(rows.usage)
    root_pk = rows.root.pk if rows.root else None
    capacity = {s.gpu_class_id: s.fair_share for s in rows.shares if s.queue_id == root_pk}
    usage: dict[Key, float] = {}
    for share in rows.shares:
        whole = capacity.get(share.gpu_class_id, 0.0)
        ratio = share.allocated / whole if whole > 0 else 0.0
        usage[share.queue_id, share.gpu_class_id] = share.usage * decay + ratio * (1 - decay)
    return usage
