"""The workloads of one snapshot after the other as columns: what both hold is read once.

A snapshot's values are frozen, so the very same object says the same as before. Columns do not depend on
what was held earlier: they are those that a roster would make of the newest snapshot alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import compress, count
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduling.engine import model as m
from scheduling.engine.roles import ordered
from scheduling.engine.snapshot.describing import Shape, number_of
from scheduling.engine.state.roles import segment_of
from scheduling.engine.state.session import empty_work
from scheduling.engine.state.units import PENDING, RUNNING

Columns = dict[str, NDArray[Any]]
"""By the names of ``Work``; the last axis runs over workloads."""

BY_NAME, RIVAL = attrgetter("name"), attrgetter("last_evicted_for")
DTYPES = {name: table.dtype for name, table in empty_work(0, 1)._asdict().items()}
LOST = -2
"""Number of a set of nodes that is gone."""
PHASES = {m.Phase.PENDING: PENDING, m.Phase.RUNNING: RUNNING}


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the names of a snapshot stand for."""

    classes: Mapping[str, int]
    cheapest_first: Sequence[int]
    priorities: Mapping[str, int]
    leaves: Mapping[str, int]
    """Queues that take workloads."""
    node_sets: Mapping[str, int]
    levels: Mapping[str | None, int]


def beside_of(nodes: Iterable[m.Node]) -> list[str]:
    """Names of what nodes have beside GPUs, CPUs and memory."""
    return sorted({name for node in nodes for name in node.beside})


def _amount(work: m.Workload | m.Role, name: str) -> int:
    """Of what nodes call so, for one member."""
    return work.beside.get(name, 1 if name == m.PLACES and work.gpus else 0)


def shapes_of(work: m.Workload, names: Sequence[str]) -> list[Shape]:
    """Its roles, largest first; ``names`` are of what nodes have beside GPUs, CPUs and memory."""
    return [
        Shape(
            one.members,
            (one.gpus, one.cpus, one.memory_mib, *(_amount(one, n) for n in names)),
            one.extra,
        )
        for one in ordered(work.roles)
    ]


class Roster:
    """Workloads by name, and their columns."""

    def __init__(self) -> None:
        self.works: list[m.Workload] = []
        self.names: list[str] = []
        self.columns: Columns = {}
        self.holders: dict[tuple[int, str], int] = {}
        """(leaf, user) -> number in the column ``user``, by their first workload: between users who hold
        as much the order decides."""
        self._ids: dict[int, m.Workload] = {}
        self._names: object = None
        self._quantile = m.Policy().backfill_quantile
        """Of the column ``ends_within``."""
        self.beside: Sequence[str] = ()
        """What members need beside GPUs, CPUs and memory, by the rows of ``need``."""
        self._node_sets: Sequence[str] = ()
        """By the numbers in the column ``where``."""
        self._have_rivals = False
        """Whether any may have been evicted for another one."""

    @property
    def known(self) -> Container[int]:
        """The addresses of the workloads of the last snapshot."""
        return self._ids

    def settle(self, snapshot: m.Snapshot) -> None:
        """Begin ``snapshot``: all is forgotten when its names stand for other numbers, or ends are told at
        another quantile.
        """
        quantile = snapshot.policy.backfill_quantile
        names = (
            snapshot.gpu_classes,
            [(q.name, q.parent) for q in snapshot.queues],
            [p.name for p in snapshot.priority_classes],
            snapshot.topology_levels,
            others := beside_of(snapshot.nodes),
        )
        if names != self._names or quantile != self._quantile:
            self.__init__()  # type: ignore[misc] # as new
            self._names, self._quantile, self.beside = names, quantile, others

    def follow(self, workloads: Sequence[m.Workload], numbers: Numbers) -> None:
        """Bring the columns in line with ``workloads`` of the snapshot that was begun."""
        self._renumber(list(numbers.node_sets))
        ids = dict(zip(map(id, workloads), workloads, strict=True))
        fresh = sorted((ids[key] for key in ids.keys() - self._ids.keys()), key=BY_NAME)
        if fresh or not self._ids.keys() <= ids.keys() or not self.columns:
            self._have_rivals |= any(work.last_evicted_for for work in fresh)
            self._merge(fresh, list(map(ids.__contains__, map(id, self.works))), numbers)
        self._ids = ids
        self._note_rivals()
        self._find_the_lost(workloads)

    def _renumber(self, node_sets: list[str]) -> None:
        """Sets of nodes have other numbers where one came or went."""
        if self._node_sets != node_sets and self.columns:
            number = {name: i for i, name in enumerate(node_sets)}
            numbers = [number.get(name, LOST) for name in self._node_sets]
            # The last is that of work without a set.
            self.columns["where"] = np.array([*numbers, -1])[self.columns["where"]]
        self._node_sets = node_sets

    def _find_the_lost(self, workloads: Sequence[m.Workload]) -> None:
        """A snapshot's fault that is seen only here: known workloads are not checked again."""
        if not (self.columns["where"] == LOST).any():
            return
        raise m.SnapshotError(
            (f"workloads[{i}].node_set", repr(work.node_set), "a name of node_sets")
            for i, work in enumerate(workloads)
            if work.node_set is not None and work.node_set not in self._node_sets
        )

    def _merge(self, fresh: list[m.Workload], stays: list[bool], numbers: Numbers) -> None:
        names = list(compress(self.names, stays))
        at = [bisect_left(names, work.name) for work in fresh]
        before = len(self.works)
        order = np.insert(np.flatnonzero(stays), at, before + np.arange(len(fresh)))
        works = [*self.works, *fresh]
        self.works = list(map(works.__getitem__, order.tolist()))
        self.names = list(map(BY_NAME, self.works))
        columns = self._read(fresh, numbers)
        if before:
            columns = _joined(self.columns, columns)
        self.columns = {name: column.take(order, -1) for name, column in columns.items()}
        wish = self.columns["wish"]
        self.columns["wish"] = wish[: max(1, int((wish >= 0).any(axis=1).sum()))]
        self._number_holders()

    def _number_holders(self) -> None:
        known = list(self.holders)
        used, first, place = np.unique(self.columns["user"], return_index=True, return_inverse=True)
        by_first = np.argsort(first)
        self.holders = {known[used[i]]: number for number, i in enumerate(by_first)}
        self.columns["user"] = np.argsort(by_first)[place]

    def _read(self, works: list[m.Workload], numbers: Numbers) -> Columns:
        """Columns of ``works`` alone; where none is given, the frame's default stands."""
        classes = numbers.classes
        wishes = [
            [classes[name] for name in w.gpu_classes if name in classes]
            if w.gpu_classes
            else numbers.cheapest_first
            for w in works
        ]
        longest = max([1, *map(len, wishes)])
        queue = [numbers.leaves.get(w.queue, -1) for w in works]
        columns: dict[str, list[Any]] = {
            "phase": [PHASES[w.phase] for w in works],
            "queue": queue,
            "user": [
                self.holders.setdefault((leaf, w.user), len(self.holders))
                for leaf, w in zip(queue, works, strict=True)
            ],
            "priority": [numbers.priorities[w.priority_class] for w in works],
            "need": [
                [w.gpus for w in works],
                [w.cpus for w in works],
                [w.memory_mib for w in works],
                *([_amount(w, name) for w in works] for name in self.beside),
            ],
            "beside": [number_of(tuple(_amount(w, n) for n in self.beside)) for w in works],
            "least": [w.members.min for w in works],
            "most": [w.members.max for w in works],
            "elastic": [w.elastic for w in works],
            "wish": [[row[k] if k < len(row) else -1 for row in wishes] for k in range(longest)],
            "where": [numbers.node_sets.get(w.node_set or "", -1) for w in works],
            "required": [numbers.levels[w.topology.required] for w in works],
            "preferred": [numbers.levels[w.topology.preferred] for w in works],
            "segment": [segment_of(w.topology, numbers.levels) for w in works],
            "submitted": [w.submitted.timestamp() for w in works],
            "predicted": [w.predicted.p50 if w.predicted else np.inf for w in works],
            "ends_within": [
                w.predicted.within(self._quantile) if w.predicted else np.inf for w in works
            ],
            "on_hold": [w.held for w in works],
            "claims": [w.awaits_victims for w in works],
            "room_due": [seconds(w.room_due, np.inf) for w in works],
            "taken": [w.taken_gpus for w in works],
            "restart": [w.restart_cost_s for w in works],
            "evictions": [w.evictions for w in works],
            "evicted": [seconds(w.last_evicted, -np.inf) for w in works],
            "rank": [np.inf if w.rank_s is None else w.rank_s for w in works],
            "virtual": [seconds(w.virtual_start, np.inf) for w in works],
            "saved": [w.saved_s for w in works],
        }
        return {name: np.array(column, DTYPES[name]) for name, column in columns.items()}

    def _note_rivals(self) -> None:
        """For whom each was evicted last, by tie: that is the place in the order of names."""
        column = np.full(len(self.works), -1, DTYPES["evicted_for"])
        if self._have_rivals:
            for i in compress(count(), map(RIVAL, self.works)):
                rival = self.works[i].last_evicted_for or ""
                place = bisect_left(self.names, rival)
                column[i] = place if self.names[place : place + 1] == [rival] else -1
        self.columns["evicted_for"] = column


def _joined(before: Columns, fresh: Columns) -> Columns:
    """The columns of those before, then those of ``fresh``; one without so many wishes has fewer."""
    wishes = max(before["wish"].shape[0], fresh["wish"].shape[0])
    return {
        name: np.concatenate([_padded(before[name], wishes), _padded(column, wishes)], -1)
        if name == "wish"
        else np.concatenate([before[name], column], -1)
        for name, column in fresh.items()
    }


def _padded(wish: NDArray[Any], rows: int) -> NDArray[Any]:
    return np.pad(wish, ((0, rows - wish.shape[0]), (0, 0)), constant_values=-1)


def seconds(instant: datetime | None, otherwise: float) -> float:
    """Seconds since the epoch."""
    return otherwise if instant is None else instant.timestamp()
