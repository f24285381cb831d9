"""What each workload would have had on the nominal quota of its queue alone, kept from cycle to cycle.

Each leaf's own partition is played along (``engine.partitions``): who starts there, and when, is kept in the
row of the workload. So a process that begins, or was killed, goes on from the rows: what had begun there
goes on, what runs for real and is not known there fills the partition in order of start, the rest waits in
order of arrival. The same is done when quotas, classes or nodes change. Time running back changes nothing.

Where work may run on several classes and their paces are known, a run that ended holds its place for as long
as it would have taken on the class that it has there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import compress
from operator import attrgetter, is_not
from typing import Any

import numpy as np

from scheduling.engine.merit import partitions
from scheduling.engine.merit.partitions import STARTED, UNKNOWN, Partitions, empty_partitions
from scheduling.models import Cluster, Prediction, State, Workload
from scheduling.models.workloads import WAITING
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.tables.bulk import write_columns

MOST_NODES = 64
"""Of a gang that is played along; a larger one never starts there."""
SPARE = 256
"""Runs that tables hold beyond those that are there."""
LONGEST = timedelta(days=90)
"""Whatever ended longer ago is over on its own quota as well."""
KEPT = ["virtual_start_at", "class_on_own_quota", "own_pace"]
ROW = attrgetter("row")


@dataclass(slots=True)
class Run:
    """A workload on its own. Times are seconds since the epoch; ``real`` is the id of the class that it ran
    on when it was looked at last.
    """

    row: Workload
    queue: int
    wish: tuple[int, ...]
    number: int = -1
    run_s: int = UNKNOWN
    ratios: Ratios = field(default_factory=dict)
    real: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Leaves and classes by number, what each leaf owns, the size of a node by class (milli-GPU), and the
    ``names`` of the classes by their id.
    """

    leaves: Mapping[int, int]
    classes: Mapping[str, int]
    nominal: tuple[tuple[int, ...], ...]
    node: tuple[int, ...]
    names: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: PolicyRows, node_gpus: Mapping[str, int]) -> Layout:
        leaves = [q for q in rows.queues if q.name in rows.leaf_names]
        quotas = rows.quotas
        nominal = tuple(
            tuple(quota.nominal if (quota := quotas.get((q.pk, c.pk))) else 0 for q in leaves)
            for c in rows.gpu_classes
        )
        return cls(
            {q.pk: i for i, q in enumerate(leaves)},
            {c.name: i for i, c in enumerate(rows.gpu_classes)},
            nominal,
            tuple(node_gpus.get(c.name, 0) for c in rows.gpu_classes),
            {c.pk: c.name for c in rows.gpu_classes},
        )


class OwnQuotas:
    """The partitions of one cluster in this process; ``follow`` brings them up to now."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._layout = Layout({}, {}, (), ())
        self._runs: dict[str, Run] = {}
        """By uid: what waits or runs there."""
        self._by_number: dict[int, Run] = {}
        self._free: list[int] = []
        self._ended: list[Workload] = []
        self._now = 0
        self._tables: Partitions
        self._own: Any = self._lay_out(SPARE)

    def follow(
        self,
        live: Mapping[str, Workload],
        ended: Mapping[str, Workload],
        layout: Layout,
        now: datetime,
    ) -> list[Workload]:
        """Tell of all that came or ended since; returns the rows to write: what began on its own, and whose
        pace there is another. By uid, ``ended`` has the rows of what is no longer ``live``; without one,
        nothing of it ran.
        """
        self._now = max(self._now, int(now.timestamp()))
        gone = self._renew_rows(live, ended)
        if self._layout != layout:
            return self._paced([*self._begin_anew(live, layout), *self._play()])
        partitions.play(self._own, self._now - 1)
        for uid in sorted(live.keys() - self._runs.keys(), key=lambda uid: _arrival(live[uid])):
            self._add(live[uid])
        self._end_all(gone)
        return self._paced(self._play())

    def _renew_rows(self, live: Mapping[str, Workload], ended: Mapping[str, Workload]) -> list[Run]:
        """Have each run its row of now; those that are no longer ``live``."""
        gone = []
        # Thousands, of which a few changed: this finds them without a line of Python for each.
        runs = self._runs.values()
        differs = map(is_not, map(ROW, runs), map(live.get, self._runs))
        for run in list(compress(runs, differs)):
            row = live.get(run.row.uid)
            if row is None:
                gone.append(run)
            run.row = row or ended.get(run.row.uid, run.row)
        return gone

    def pass_on(self, came: Iterable[Workload], ended: Iterable[Workload], now: datetime) -> None:
        """The same of a past in which nothing else changed, in memory: no other rows are looked at."""
        self._now = max(self._now, int(now.timestamp()))
        partitions.play(self._own, self._now - 1)
        new = [self._add(row) for row in sorted(came, key=_arrival)]
        gone = [self._runs[row.uid] for row in ended if row.uid in self._runs]
        self._end_all(gone)
        self._paced(self._play(), [run for run in new if run is not None])

    def take_ended(self) -> list[Workload]:
        """What has ended since this was last asked, in order."""
        ended, self._ended = self._ended, []
        return sorted(ended, key=lambda row: (row.finished_at or row.submitted_at, row.uid))

    def _begin_anew(self, live: Mapping[str, Workload], layout: Layout) -> list[Workload]:
        """Everything from the rows."""
        known = {uid: run.row for uid, run in self._runs.items() if uid not in live}
        ended = known or {row.uid: row for row in _ended_lately(self._cluster, self._now)}
        self._layout, self._runs, self._by_number = layout, {}, {}
        self._own = self._lay_out(len(ended) + len(live) + SPARE)
        runs = [run for row in live.values() if (run := self._run_of(row)) is not None]
        ratios = ratios_of(ended.values())
        for row in ended.values():
            if (run := self._run_of(row)) is not None:
                run.run_s, run.ratios = alone_s(row), ratios.get(row.uid, {})
                runs.append(run)
        return self._restore(runs)

    def _lay_out(self, size: int) -> Any:
        layout = self._layout
        nominal = np.array(layout.nominal, np.int64).reshape(len(layout.node), len(layout.leaves))
        node = np.array(layout.node, np.int64)
        self._tables = empty_partitions(nominal, node, size, max(1, len(layout.node)), MOST_NODES)
        self._free = list(range(size - 1, -1, -1))
        return partitions.struct_of(self._tables)

    def _restore(self, runs: list[Run]) -> list[Workload]:
        """First what had begun there, in order; then what runs for real; the rest waits."""
        began: list[Workload] = []
        waiting: list[Run] = []
        for run in sorted(runs, key=_order):
            row, start = run.row, run.row.virtual_start_at or _real_start(run.row)
            self._take(run)
            begun = start is not None and start.timestamp() <= self._now
            if (
                not begun
                or start is None
                or not partitions.restore_run(
                    self._own, run.number, int(start.timestamp()), run.run_s, self._before(run)
                )
            ):
                waiting.append(run)
            elif row.virtual_start_at is None:
                self._note_start(run, start)
                began.append(row)
        for run in sorted(waiting, key=lambda run: _arrival(run.row)):
            partitions.submit_run(self._own, run.number)
            if run.run_s != UNKNOWN:
                partitions.end_run(self._own, run.number, run.run_s, self._now)
        return began

    def _add(self, row: Workload) -> Run | None:
        run = self._run_of(row)
        if run is not None:
            self._take(run)
            partitions.submit_run(self._own, run.number)
        return run

    def _run_of(self, row: Workload) -> Run | None:
        """None for what no leaf takes."""
        queue = self._layout.leaves.get(row.queue_id or 0)
        if queue is None:
            return None
        known = self._layout.classes
        names = row.gpu_classes or list(known)
        wish = tuple(known[name] for name in names if name in known)
        return Run(row, queue, wish)

    def _real(self, row: Workload) -> str:
        """The class that it runs on, or ran on last; "" where it did not."""
        return self._layout.names.get(row.gpu_class_id or 0, "")

    def _before(self, run: Run) -> int:
        """The preference by which it began there, else the one by which it runs for real; -1 unknown."""
        number = self._layout.classes.get(run.row.class_on_own_quota or self._real(run.row), -1)
        return run.wish.index(number) if number in run.wish else -1

    def _note_start(self, run: Run, start: datetime) -> None:
        number = run.wish[int(self._tables.on[run.number])]
        run.row.virtual_start_at = start
        run.row.class_on_own_quota = next(n for n, c in self._layout.classes.items() if c == number)

    def _take(self, run: Run) -> None:
        """A number, and its place in the tables."""
        if not self._free:
            self._widen()
        tables, row = self._tables, run.row
        run.number = self._free.pop()
        self._runs[row.uid] = self._by_number[run.number] = run
        tables.queue[run.number], tables.need[run.number] = run.queue, row.gpus
        tables.members[run.number] = row.min_members
        tables.wish[:, run.number] = -1
        tables.wish[: len(run.wish), run.number] = run.wish
        self._set_pace(run)

    def _set_pace(self, run: Run) -> None:
        """By preference; known once it has ended."""
        names, real = list(self._layout.classes), self._real(run.row)
        paces = [longer(run.ratios, real, names[c]) for c in run.wish]
        self._tables.pace[:, run.number] = 1.0
        self._tables.pace[: len(paces), run.number] = paces

    def _widen(self) -> None:
        """Tables for twice as many, filled from the rows."""
        runs = list(self._runs.values())
        self._runs, self._by_number = {}, {}
        self._own = self._lay_out(2 * len(runs) + SPARE)
        self._restore(runs)

    def _end_all(self, runs: Iterable[Run]) -> None:
        """They are no longer live: how long they ran is known."""
        new = [run for run in runs if run.run_s == UNKNOWN]
        ratios = ratios_of(run.row for run in new)
        for run in new:
            run.run_s, run.ratios = alone_s(run.row), ratios.get(run.row.uid, {})
            self._ended.append(run.row)
            self._set_pace(run)
            partitions.end_run(self._own, run.number, run.run_s, self._now)

    def _play(self) -> list[Workload]:
        partitions.play(self._own, self._now)
        tables = self._tables
        began = []
        for number in tables.started[: tables.count[STARTED]].tolist():
            run = self._by_number[number]
            self._note_start(run, datetime.fromtimestamp(int(tables.start[number]), UTC))
            began.append(run.row)
        tables.count[STARTED] = 0
        over = set(np.flatnonzero(tables.state == partitions.OVER).tolist())
        for number in over & self._by_number.keys():
            self._leave(number)
        return began

    def _paced(self, began: list[Workload], among: Iterable[Run] | None = None) -> list[Workload]:
        """``began`` and those ``among`` (None: all) that run on another class than when they were looked at
        last, with how their class compares with the one that they have on their own."""
        looked_through = self._runs.values() if among is None else among
        is_one = len(self._layout.classes) < 2
        several = [] if is_one else [run for run in looked_through if len(run.wish) > 1]
        moved = [run for run in several if run.real != run.row.gpu_class_id]
        for run in moved:
            run.real = run.row.gpu_class_id
        written = {row.uid: row for row in began}
        looked_at = {**written, **{run.row.uid: run.row for run in moved}}
        ratios = ratios_of(looked_at.values())
        for uid, row in looked_at.items():
            real, own = self._real(row), row.class_on_own_quota
            pace = longer(ratios.get(uid, {}), real, own) if real and own else row.own_pace
            if pace != row.own_pace:
                row.own_pace, written[uid] = pace, row
        return list(written.values())

    def _leave(self, number: int) -> None:
        """It is over there; its number is free once it is over for real, too."""
        run = self._by_number[number]
        if run.run_s != UNKNOWN:
            del self._by_number[number], self._runs[run.row.uid]
            self._free.append(number)


def save(began: Iterable[Workload]) -> None:
    """Write when they began, in the caller's transaction."""
    write_columns([row for row in began if row.pk is not None], KEPT)


def lead_s(work: Workload, now: datetime) -> float | None:
    """How many seconds later ``work`` would be as far on the nominal of its queue alone as it is: negative
    when it is behind. None before it would have begun there.
    """
    if work.virtual_start_at is None:
        return None
    began = _real_start(work)
    ran_s = max(0.0, (now - began).total_seconds()) if began else 0.0
    as_far = work.virtual_start_at + timedelta(seconds=(work.saved_s + ran_s) * work.own_pace)
    return (as_far - now).total_seconds()


def _real_start(row: Workload) -> datetime | None:
    """Of its run, if it runs or has run to its end."""
    return None if row.state in WAITING or row.state == State.EVICTED else row.started_at


def alone_s(row: Any) -> int:
    """Seconds that all its work takes with its least members; 0 if it never began."""
    if row.started_at is None or row.finished_at is None:
        return 0
    ran = max(0.0, (row.finished_at - row.started_at).total_seconds()) + row.saved_s
    return max(1, int(ran * max(row.members, row.min_members) / max(1, row.min_members)))


def _arrival(row: Workload) -> tuple[datetime, str]:
    return row.submitted_at, row.uid


def _order(run: Run) -> tuple[bool, datetime, str]:
    """Work that had begun there by when, then work that runs for real by when."""
    row = run.row
    return (
        row.virtual_start_at is None,
        row.virtual_start_at or _real_start(row) or row.submitted_at,
        row.uid,
    )


def _ended_lately(cluster: Cluster, now: int) -> Iterable[Workload]:
    """What may go on there though it is over: it began there, and ran no less than since then."""
    since = datetime.fromtimestamp(now, UTC) - LONGEST
    rows = Workload.objects.filter(
        cluster=cluster, state=State.FINISHED, finished_at__gt=since, virtual_start_at__isnull=False
    )
    for row in rows.iterator():
        assert row.virtual_start_at is not None  # noqa: S101 - filtered
        if row.virtual_start_at.timestamp() + alone_s(row) * row.own_pace > now:
            yield row


def node_gpus(sizes: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Milli-GPU of the largest node of each class."""
    found: dict[str, int] = {}
    for name, gpus in sizes:
        found[name] = max(found.get(name, 0), gpus)
    return found


Ratios = Mapping[str, float]
"""GPU class -> how many times sooner a run ends there than on the first that its author names."""


def ratios_of(works: Iterable[Workload]) -> dict[str, Ratios]:
    """By uid, of those of ``works`` that may run on several classes, as far as it was predicted. One query;
    none where there is no such work."""
    several = [work.pk for work in works if len(work.gpu_classes) > 1 and work.pk is not None]
    if not several:
        return {}
    known = Prediction.objects.filter(workload__in=several).exclude(paces={}).order_by()
    return dict(known.values_list("workload__uid", "paces"))


def longer(ratios: Ratios, real: str, own: str) -> float:
    """How many times as long a run takes on class ``own`` as on ``real``; 1 where nobody knows."""
    here, there = ratios.get(real), ratios.get(own)
    return here / there if here and there else 1.0
