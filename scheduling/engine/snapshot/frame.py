"""The frame: a snapshot as structs of arrays, kept up in place by whoever plans again and again.

    frame = encode(snapshot)
    plan = plan_frame(frame)
    for slot in plan.admitted():
        frame.start_on(slot, int(plan.gpu_class[slot]), plan.seats(slot))
    frame.now += 60
    frame.finish(slot)

A workload lives in a slot, a small integer that is used again after ``finish``. Queues, classes, nodes
and priority classes are numbers; ``frame.queue_names[number]`` and its sisters give the names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from scheduling.engine.compile.structs import as_struct, laid_out
from scheduling.engine.model import Policy, Snapshot
from scheduling.engine.snapshot import events
from scheduling.engine.snapshot.describing import Shape, describe, number_of
from scheduling.engine.state.input import (
    Holds,
    Nodes,
    Pool,
    Quotas,
    Ranks,
    Rules,
    Tree,
    Users,
    Work,
)
from scheduling.engine.state.order import note_all_pending, note_all_running
from scheduling.engine.state.session import empty_work, session_for
from scheduling.engine.state.units import ANYWHERE, CPUS, GPUS, MEMORY, PENDING, RUNNING

if TYPE_CHECKING:
    from scheduling.engine.compile.words import Struct


class Frame:
    """Arrays of a snapshot. ``now`` is in seconds since the epoch and may be set.

    After changing ``tree``, ``quotas``, ``nodes`` or ``ranks`` arrays in place (a new quota, a node that
    is down) nothing else is needed.
    """

    work: Work
    holds: Holds
    pool: Pool

    def __init__(
        self,
        *,
        now: float,
        rules: Rules,
        names: dict[str, list[str]],
        tree: Tree,
        quotas: Quotas,
        former: Quotas,
        nodes: Nodes,
        ranks: Ranks,
        slots: int = 64,
    ) -> None:
        self.now = now
        self.class_names = names["classes"]
        self.queue_names = names["queues"]
        self.node_names = names["nodes"]
        self.priority_names = names["priorities"]
        self.level_names = names["levels"]
        self.tree, self.quotas, self.former = tree, quotas, former
        self.nodes, self.ranks = nodes, ranks
        self.rules = rules
        self.users = Users(np.full(64, -1, np.int64), np.zeros(64, np.int64))
        self.open_to_all = ANYWHERE
        """In place of ``where`` of work without constraints: not anywhere where nodes are dedicated."""
        self.backfill_quantile = Policy().backfill_quantile
        """Of which ``ends_within`` of every workload is."""
        self.source: Snapshot | None = None
        self.slot_names: dict[int, str] = {}
        self.pairs: dict[tuple[int, str], int] = {}
        self._next_tie = 0
        self._pool = 0
        self.shapes: dict[tuple[int, ...], int] = {}
        """Slots that no workload has: what a member of a role needs, and where it may go."""
        self._world: Struct | None = None
        self._grow(max(slots, 1), 2 * max(slots, 1), 1)

    # -- workloads -----------------------------------------------------------------------------

    def add_workload(self, *, name: str | None = None, **what: Any) -> int:
        """A pending workload as ``describe`` has it; returns its slot."""
        self.shapes_of(
            what.get("roles", ()), what.get("where", ANYWHERE), what.get("classes", (0,))
        )
        self.make_room(slots=1, wishes=len(what.get("classes", ())))
        slot = int(self.pool.slots[0])
        describe(self, self.work, slot, **what)
        if name is not None:
            self.slot_names[slot] = name
        world = self.world
        events.take_slot(world)
        events.arrive(world, slot)
        return slot

    def shapes_of(
        self, roles: Sequence[Shape], where: int = ANYWHERE, classes: Sequence[int] = (0,)
    ) -> list[int]:
        """Slots that no workload has, each with what a member of one of these roles needs and where it may
        go. The tables may be others afterwards.
        """
        return [
            self._shape((*one.needs, where, *classes), one.needs, where, classes) for one in roles
        ]

    def _shape(
        self, key: tuple[int, ...], need: Sequence[int], where: int, classes: Sequence[int]
    ) -> int:
        if key not in self.shapes:
            self.make_room(slots=1, wishes=len(classes))
            slot = self.shapes[key] = int(self.pool.slots[0])
            events.take_slot(self.world)
            work = self.work
            work.need[:, slot], work.wish[:, slot] = 0, -1
            work.need[: len(need), slot] = need
            work.beside[slot] = number_of(tuple(need[MEMORY + 1 :]))
            work.where[slot], work.wish[: len(classes), slot] = where, classes
        return self.shapes[key]

    def take_tie(self, tie: int | None) -> int:
        """``tie``, or the next in the order of arrival."""
        taken = self._next_tie if tie is None else tie
        self._next_tie = max(self._next_tie, taken) + 1
        return taken

    def load(
        self, names: list[str], columns: dict[str, Any], holders: Sequence[tuple[int, str]]
    ) -> None:
        """Fill an empty frame with pending workloads, column by column of ``Work``.

        ``user`` is a place among ``holders``, pairs of queue and user. Slots, and ties, are in the order
        of ``names``.
        """
        count = len(names)
        slots = max(count + 1, self.work.phase.size)
        if count:
            self._grow(slots, 2 * slots, max(self.work.wish.shape[0], len(columns["wish"])))
            pairs = np.array([self.pair(queue, user) for queue, user in holders], np.int64)
            columns = columns | {"user": pairs[columns["user"]]}
            for name, column in columns.items():
                table = getattr(self.work, name)
                rows = (slice(len(column)),) if table.ndim > 1 else ()
                table[*rows, :count] = column
        self.work.phase[:count] = PENDING
        self.work.tie[:count] = np.arange(count)
        self.slot_names = dict(enumerate(names))
        self._next_tie = count
        free = self.pool.slots[: self.pool.left[events.SLOTS]]
        free = free[free >= count]
        self.pool.slots[: free.size] = free
        self.pool.left[events.SLOTS] = free.size
        self._world = None

    def start_on(self, slot: int, gpu_class: int, seats: Iterable[tuple[int, int]]) -> None:
        """The workload starts now; ``seats`` are (node, device) by member, device -1 for whole GPUs."""
        nodes, devices = events.columns(seats)
        self.make_room(holds=nodes.size)
        events.start(self.world, slot, gpu_class, nodes, devices, float(self.now))

    def leave(self, slot: int, rival: int = -1) -> None:
        """A workload evicted now, for ``rival`` if there is one: its pods still hold GPUs; ``requeue`` or
        ``finish`` it when they go.
        """
        events.leave(self.world, slot, rival, float(self.now))

    def part(self, slot: int, seats: Sequence[tuple[int, int]]) -> int:
        """Members of ``slot`` that leave ``seats``, as a nameless workload that asks for nothing."""
        need = self.work.need[:, slot].tolist()
        parting = self.add_workload(
            queue=int(self.work.queue[slot]),
            submitted=self.now,
            gpus=need[GPUS],
            cpus=need[CPUS],
            memory_mib=need[MEMORY],
            beside=need[MEMORY + 1 :],
            members=(0, 0),
            classes=(),
        )
        work = self.work
        work.user[parting], work.priority[parting] = work.user[slot], work.priority[slot]
        work.part_of[parting], work.evicted_for[parting] = slot, work.tie[slot]
        work.roles[:, parting] = work.roles[:, slot]
        self.start_on(parting, int(work.gpu_class[slot]), seats)
        self.work.leaving[parting] = True
        return parting

    def requeue(self, slot: int) -> None:
        """An evicted workload is pending again; it keeps its submit time."""
        events.requeue(self.world, slot)

    def promise(self, slot: int, gpu_class: int, seats: Iterable[tuple[int, int]]) -> None:
        """Keep ``seats`` (node, device) for a pending workload."""
        nodes, devices = events.columns(seats)
        self.make_room(holds=nodes.size)
        events.promise(self.world, slot, gpu_class, nodes, devices)

    def forget_promise(self, slot: int) -> None:
        """A pending workload waits like any other again."""
        events.forget_promise(self.world, slot)

    def reseat(self, slot: int, seats: Iterable[tuple[int, int]]) -> None:
        """A running workload has a member on each of ``seats`` (node, device) from now on."""
        nodes, devices = events.columns(seats)
        self.make_room(holds=nodes.size)
        events.resize(self.world, slot, nodes, devices)

    def finish(self, slot: int) -> None:
        """The workload is over or cancelled; its slot is free."""
        events.finish(self.world, slot)
        self.slot_names.pop(slot, None)

    def note_usage(self, queue: int, user: str, gpus: int) -> None:
        """``user`` held ``gpus`` (milli-GPU) in the leaf ``queue`` on average, older time counting less."""
        pair = self.pair(queue, user)  # which may make the arrays anew
        self.users.usage[pair] = gpus

    def user_in(self, slot: int, queue: int) -> int:
        """Number of the user of ``slot`` in another queue."""
        number = int(self.work.user[slot])
        user = next(user for (_, user), pair in self.pairs.items() if pair == number)
        return self.pair(queue, user)

    def forget(self) -> None:
        """Drop every table made for planning; the next plan builds them anew, as a new frame's would."""
        self._world = None

    @property
    def world(self) -> Struct:
        """The struct that kernels read; built again only after the arrays grew."""
        if self._world is None:
            vars(self).pop("buffers", None)  # large: their memory is free before others are made
            b = self.buffers = session_for(
                self.users.above.size, self._pool, tree=self.tree, quotas=self.quotas, nodes=self.nodes,
                work=self.work, ranks=self.ranks, holds=self.holds, rules=self.rules, users=self.users,
                former=self.former, pool=self.pool,
            )  # fmt: skip
            self._world = as_struct(b)
            events.find_holds(self._world)
            note_all_pending(b.ordering, np.flatnonzero(self.work.phase == PENDING))
            note_all_running(b.ordering, np.flatnonzero(self.work.phase == RUNNING))
        return self._world

    def widen(self) -> bool:
        """Whether the last plan had more seats to write down than the tables take. They have room now:
        plan again.
        """
        short = int(self.buffers.out.pool.size[0]) > self.buffers.out.pool.node.size
        if short:
            self._pool = 2 * int(self.buffers.out.pool.size[0])
            self._world = None
        return short

    def pair(self, queue: int, user: str) -> int:
        """Number of the pair; the same user has one in every queue above as well."""
        pair = self.pairs.get((queue, user), -1)
        if pair < 0:
            parent = int(self.tree.parent[queue]) if queue > 0 else 0
            above = self.pair(parent, user) if parent > 0 else -1
            pair = self.pairs[queue, user] = len(self.pairs)
            if pair == self.users.above.size:
                self.users = Users(*(np.append(part, part) for part in self.users))
                self._world = None
            self.users.above[pair], self.users.usage[pair] = above, 0
        return pair

    def seats_of(self, slot: int) -> list[tuple[int, int]]:
        """Node and device of each member."""
        seats, h = [], int(self.holds.head[slot])
        while h >= 0:
            seat = int(self.holds.node[h]), int(self.holds.device[h])
            seats += [seat] * int(self.holds.members[h])
            h = int(self.holds.next[h])
        return seats

    def make_room(self, *, slots: int = 0, holds: int = 0, wishes: int = 0) -> None:
        """Have at least so many slots and holds unused, and room for so many wishes of a workload."""
        size, many = self.work.phase.size, self.holds.node.size
        rows = self.work.wish.shape[0]
        more = max(0, slots - int(self.pool.left[events.SLOTS]))
        more_holds = max(0, holds - int(self.pool.left[events.HOLDS]))
        if more or more_holds or wishes > rows:
            self._grow(
                max(2 * size, size + more) if more else size,
                max(2 * many, many + more_holds) if more_holds else many,
                max(rows, wishes),
            )

    def _grow(self, slots: int, holds: int, wishes: int) -> None:
        """Make the tables of workloads at least this large; what is in them stays."""
        old = self.work.phase.size if hasattr(self, "work") else 0
        old_holds = self.holds.node.size if old else 0
        work = empty_work(slots, wishes, self.nodes.size.shape[0])
        sizes = {"slot": slots, "hold": holds}
        table, pool = laid_out(Holds, sizes), laid_out(Pool, sizes)
        if old:
            for field, fresh in zip((*self.work, *self.holds), (*work, *table), strict=True):
                fresh[tuple(slice(0, n) for n in field.shape)] = field
        for heap, before, size, k in (
            (pool.slots, old, slots, events.SLOTS),
            (pool.holds, old_holds, holds, events.HOLDS),
        ):
            present = (
                (self.pool.slots, self.pool.holds)[k][: self.pool.left[k]] if old else heap[:0]
            )
            pool.left[k] = present.size + size - before
            heap[: pool.left[k]] = np.append(present, np.arange(before, size))
        self.work, self.holds, self.pool = work, table, pool
        self._world = None
