"""How each workload stands: expected work from the run times of its class, and its start on its own quota.

``put`` writes both into a snapshot, for work whose plan depends on it. A class is a queue and a number of
GPUs; only runs that are over count, the last of them (``engine.gittins``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from scheduling.engine import model as m
from scheduling.engine.merit import gittins
from scheduling.models import Cluster, Outcome, Sharing, State, Workload
from scheduling.services.queues.own_quotas import alone_s
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.queues.sharing import leaves_by_merit

RANK = "rank"
"""The order of leaves that goes by expected work."""
HORIZON = timedelta(days=60)
MOST_READ = 20_000
READ = (
    "queue_label", "gpus", "members", "min_members", "outcome", "started_at", "finished_at", "saved_s",
)  # fmt: skip
"""Of a run that is over, what its class learns from."""
AGES_S, AGES_SHARE = 60.0, 0.05
"""The expectation of a run is found anew when it has run longer by both since."""
EVERY = ("", 0)

Key = tuple[str, int]
"""Queue and milli-GPU; (queue, 0) for a whole queue."""
Fields = dict[str, Any]


class RunTimes:
    """The last run times of each class of one cluster."""

    def __init__(self) -> None:
        self._rows: dict[Key, int] = {EVERY: 0}
        self._tables = gittins.empty_run_times(64)
        self._struct = gittins.struct_of(self._tables)

    @classmethod
    def of(cls, cluster: Cluster, now: datetime) -> RunTimes:
        """As the ledger knew them at ``now``."""
        ended = Workload.objects.filter(
            cluster=cluster,
            state=State.FINISHED,
            finished_at__gt=now - HORIZON,
            finished_at__lte=now,
        ).exclude(started_at=None)
        # Bare rows: whoever keeps nothing between two snapshots reads thousands for each.
        newest = list(
            ended.order_by("-finished_at", "-id").values_list(*READ, named=True)[:MOST_READ]
        )
        made = cls()
        made.note(reversed(newest))
        return made

    def note(self, ended: Iterable[Any]) -> None:
        """Runs that are over, each with the columns ``READ``, in order of their ends. What somebody cancelled
        says nothing."""
        rows, runs = [], []
        for work in ended:
            ran_s = 0 if work.outcome == Outcome.CANCELLED else alone_s(work)
            for key in self._keys(work) if ran_s > 0 else ():
                rows.append(self._row(key))
                runs.append(float(ran_s))
        if rows:
            gittins.note_run_times(self._struct, np.array(rows), np.array(runs))

    def expected_s(self, works: Iterable[Workload], ages_s: Iterable[float]) -> list[float]:
        """Least expected seconds to an end, of each of ``works`` at its age."""
        rows = [[self._row(key) for key in self._keys(work)] for work in works]
        ages = np.array(list(ages_s), np.float64)
        found = np.zeros(ages.size)
        if rows:
            gittins.indices(self._struct, np.array(rows), ages, found)
        return list(found.tolist())

    def _keys(self, work: Any) -> tuple[Key, Key, Key]:
        return (work.queue_label, work.gpus * work.min_members), (work.queue_label, 0), EVERY

    def _row(self, key: Key) -> int:
        row = self._rows.setdefault(key, len(self._rows))
        size = self._tables.ended.size
        if row >= size:
            wider = gittins.empty_run_times(2 * size)
            for old, new in zip(self._tables, wider, strict=True):
                new[:size] = old
            self._tables, self._struct = wider, gittins.struct_of(wider)
        return row


class Standings:
    """What ``put`` remembers from one snapshot to the next: what stands as before is the same object."""

    def __init__(self, times: RunTimes) -> None:
        self.times = times
        self._ages: dict[str, tuple[float, float]] = {}
        """Engine name -> age at which its expectation was found, and that."""
        self._made: dict[str, tuple[m.Workload, Fields, m.Workload]] = {}

    def put(
        self, snapshot: m.Snapshot, rows: PolicyRows, by_name: Mapping[str, Workload]
    ) -> m.Snapshot:
        """``snapshot`` with how work stands, where a subtree shares by merit or leaves go by rank."""
        every = snapshot.policy.order == RANK
        leaves = leaves_by_merit(rows.queues, Sharing(rows.cluster.sharing))
        if not every and not leaves:
            return snapshot
        pending = {
            work.name: by_name[work.name]
            for work in snapshot.workloads
            if work.name in by_name and (every or work.queue in leaves)
        }
        expected = self._expected(pending, snapshot.now)
        works = [
            self._placed(work, pending[work.name], expected[work.name])
            if work.name in pending
            else work
            for work in snapshot.workloads
        ]
        self._made = {name: made for name, made in self._made.items() if name in pending}
        self._ages = {name: age for name, age in self._ages.items() if name in pending}
        return replace(snapshot, workloads=tuple(works))

    def _expected(self, pending: Mapping[str, Workload], now: datetime) -> dict[str, float]:
        ages = {name: _age_s(work, now) for name, work in pending.items()}
        names = [name for name, work in pending.items() if self._is_due(name, work, ages[name])]
        found = self.times.expected_s([pending[n] for n in names], [ages[n] for n in names])
        for name, expected_s in zip(names, found, strict=True):
            self._ages[name] = ages[name], expected_s
        return {name: self._ages[name][1] for name in pending}

    def _is_due(self, name: str, work: Workload, age_s: float) -> bool:
        """What waits is looked at each time: run times of its class may have become known."""
        known = self._ages.get(name)
        if known is None or work.is_waiting:
            return True
        return not known[0] <= age_s <= known[0] + max(AGES_S, AGES_SHARE * known[0])

    def _placed(self, work: m.Workload, row: Workload, expected_s: float) -> m.Workload:
        fields: Fields = {
            "rank_s": expected_s,
            "virtual_start": row.virtual_start_at,
            "saved_s": row.saved_s * row.own_pace,
        }
        known = self._made.get(work.name)
        if known is not None and known[0] is work and known[1] == fields:
            return known[2]
        made = replace(work, **fields)
        self._made[work.name] = work, fields, made
        return made


def standing_in(
    snapshot: m.Snapshot, rows: PolicyRows, by_name: Mapping[str, Workload]
) -> m.Snapshot:
    """``Standings.put`` for whoever keeps nothing from one snapshot to the next."""
    if snapshot.policy.order != RANK and not leaves_by_merit(
        rows.queues, Sharing(rows.cluster.sharing)
    ):
        return snapshot
    times = RunTimes.of(rows.cluster, snapshot.now)
    return Standings(times).put(snapshot, rows, by_name)


def _age_s(work: Workload, now: datetime) -> float:
    """Seconds of work that it has had and would not lose, or is having."""
    ran_s = 0.0
    if work.state == State.RUNNING and work.started_at is not None:
        ran_s = max(0.0, (now - work.started_at).total_seconds())
    return work.saved_s + ran_s
