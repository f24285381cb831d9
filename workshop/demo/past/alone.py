"""A past that is known whole, played on own quotas alone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from scheduling.models import Cluster, State, Workload
from scheduling.services.queues.own_quotas import Layout, OwnQuotas


def play_back(rows: Iterable[Workload], layout: Layout, cluster: Cluster) -> None:
    """Find for ``rows``, a past that is known whole, when each would have begun on its own; in memory."""
    every = sorted(rows, key=lambda row: (row.submitted_at, row.uid))
    ends = [row for row in every if row.state == State.FINISHED and row.finished_at]
    moments = sorted(
        {row.submitted_at for row in every} | {row.finished_at for row in ends if row.finished_at}
    )
    ends.sort(key=lambda row: (row.finished_at or row.submitted_at, row.uid), reverse=True)
    waiting, own = list(reversed(every)), OwnQuotas(cluster)
    for now in moments[:1]:
        own.follow({}, {}, layout, now - timedelta(seconds=1))
    for now in moments:
        came, ended = [], []
        while waiting and waiting[-1].submitted_at <= now:
            came.append(waiting.pop())
        while ends and (ends[-1].finished_at or now) <= now:
            ended.append(ends.pop())
        own.pass_on(came, ended, now)
