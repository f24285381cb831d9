"""What would start a waiting workload now: the same cycle planned again with one input relaxed.

Only those on whom the answer can turn are asked again: who started, was promised room, keeps a turn or
holds nodes. Whoever was refused stays refused when another asks for room too; what they ask for counts
in the division all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from scheduling.engine import codes
from scheduling.engine.array_plan import ArrayPlan
from scheduling.engine.arrays import (
    ANYWHERE,
    CPUS,
    GPUS,
    LEVELS,
    MEMORY,
    PENDING,
    UNLIMITED,
    Ints,
)
from scheduling.engine.encode import encode
from scheduling.engine.frame import Frame
from scheduling.engine.kernels import plan_world
from scheduling.engine.line import ALL, FEW, FRESH, LISTED
from scheduling.engine.model import MILLI, Snapshot
from scheduling.engine.planner import plan_frame
from scheduling.engine.relaxation import Change, Reach, Relaxation
from scheduling.engine.wording import amount, gpus_in_words


def relaxations(snapshot: Snapshot, workload: str, reach: Reach | None = None) -> list[Relaxation]:
    """The changes of one input that start ``workload``, cheapest first; empty if it starts anyway.

    Without ``reach`` every leaf and every priority class may be chosen. Raises KeyError for an unknown
    workload, SnapshotError as ``plan`` does.
    """
    frame = encode(snapshot)
    slots = {name: slot for slot, name in frame.slot_names.items()}
    if reach is None:
        leaves = [name for name in frame.queue_names if name and _is_leaf(frame, name)]
        reach = Reach(leaves, frame.priority_names)
    return relaxations_in(frame, slots[workload], reach)


def relaxations_in(
    frame: Frame, slot: int, reach: Reach, plan: ArrayPlan | None = None
) -> list[Relaxation]:
    """The same for a slot of a frame that is kept up in place. ``plan`` is its last one, if nothing has
    changed since and it has a user in every queue of ``reach``; it is not valid afterwards.
    """
    for queue in reach.queues:
        frame.user_in(slot, frame.queue_names.index(queue))
    if plan is None or frame.world is None or plan.out is not frame.buffers.out:
        plan = plan_frame(frame)
    if frame.work.phase[slot] != PENDING or plan.action[slot] not in (codes.WAIT, codes.RESERVE):
        return []
    if frame.work.held[slot] or plan.reason[slot] == codes.AWAITS_VICTIMS:
        return []
    with _Again(frame, slot, plan) as again:
        return list(_found(again, reach))


def _is_leaf(frame: Frame, name: str) -> bool:
    queue = frame.queue_names.index(name)
    return bool(frame.tree.kid_start[queue] == frame.tree.kid_start[queue + 1])


class _Again:
    """Plans the frame again and again with one slot changed, among the few who matter."""

    def __init__(self, frame: Frame, slot: int, plan: ArrayPlan) -> None:
        self.frame, self.slot = frame, slot
        self.blame, self.gpu_class = int(plan.blame[slot]), max(0, int(plan.gpu_class[slot]))
        self.reason = int(plan.reason[slot])
        self.held = int(plan.book.held[self.gpu_class, self.blame])
        self._circles = [(among, plan.book.asked) for among in self._who_matters(plan)]

    def __enter__(self) -> _Again:
        line, book = self.frame.buffers.line, self.frame.buffers.book
        self._line = line.item[: line.count[0]].copy()
        asked = book.asked.copy()
        self._kind = int(self.frame.buffers.memo.of[self.slot])
        line.count[3] = FEW
        for k, (among, _) in enumerate(self._circles):
            self._list(among)
            book.extra[...] = 0
            plan_world(self.frame.world, self.frame.now, False)
            self._circles[k] = among, asked - book.asked
        return self

    def __exit__(self, *_: object) -> None:
        line = self.frame.buffers.line
        line.item[: self._line.size] = self._line
        line.count[0], line.count[1], line.count[3] = self._line.size, 0, ALL
        line.state[self.slot] = LISTED
        self.frame.buffers.memo.of[self.slot] = self._kind
        self.frame.buffers.book.extra[...] = 0

    def _who_matters(self, plan: ArrayPlan) -> tuple[Ints, Ints]:
        """Who got or keeps something, or stepped back; and those with whoever goes first in a leaf."""
        line, book = self.frame.buffers.line, plan.book
        item = line.item[: line.count[0]]
        matters = np.zeros(self.frame.work.phase.size, np.bool_)
        action = plan.action[item]
        waiting = (action == codes.WAIT) | (action == codes.UNDECIDED)
        matters[item[~waiting | plan.out.stepped_back[item]]] = True
        for kept in (book.turn, book.holder, book.promised):
            matters[kept[kept >= 0]] = True
        matters[self.slot] = False
        few = item[matters[item]]
        waits = line.leaf[:-1] < line.leaf[1:]
        matters[line.item[line.start[line.leaf[:-1][waits]]]] = True
        matters[self.slot] = False
        return few, item[matters[item]]

    def plan(self) -> ArrayPlan | None:
        """The plan with the slot as it is now, None if it does not start, nor is promised room. Who would
        is asked once more in the wider circle; what those outside it ask for counts in both.
        """
        for among, extra in self._circles:
            self._list(among)
            self.frame.buffers.book.extra[...] = extra
            plan = plan_frame(self.frame)
            promised = plan.reason[self.slot] == codes.AWAITS_VICTIMS
            if plan.action[self.slot] != codes.ADMIT and not promised:
                return None
        return plan

    def _list(self, among: Ints) -> None:
        """``among`` and the slot are in line."""
        line = self.frame.buffers.line
        line.item[: among.size] = among
        line.count[0], line.count[1] = among.size, 1
        line.fresh[0] = self.slot
        line.state[self.slot] = FRESH

    def starts(
        self, change: Change, value: str | int, sentence: str, queue: str = ""
    ) -> Relaxation | None:
        """The relaxation if the slot starts, or is promised room, as it is now."""
        plan, frame, slot = self.plan(), self.frame, self.slot
        if plan is None:
            return None
        kind = frame.class_names[int(plan.gpu_class[slot])]
        gone = (
            sum(int(plan.members[v] * frame.work.need[GPUS, v]) for v in plan.evicted())
            if plan.reason[slot] == codes.AWAITS_VICTIMS
            else 0
        )
        left = "has" if gone == MILLI else "have"
        after = f", once {gpus_in_words(gone)} of others {left} left" if gone else ""
        return Relaxation(change, value, f"{sentence} {kind}{after}.", kind, gone, queue)

    def with_fields(
        self, fields: dict[str, Any], ask: Callable[[], Relaxation | None]
    ) -> Relaxation | None:
        """``ask`` while ``fields`` of the slot have other values."""
        work, slot = self.frame.work, self.slot
        kept = {name: getattr(work, name)[..., slot].copy() for name in fields}
        for name, value in fields.items():
            getattr(work, name)[..., slot] = value
        try:
            return ask()
        finally:
            for name, value in kept.items():
                getattr(work, name)[..., slot] = value


def _found(again: _Again, reach: Reach) -> Iterator[Relaxation]:
    tries = (
        _topology(again),
        _other_classes(again),
        _fewer_cpus(again),
        _less_memory(again),
        _fewer_members(again),
        _fewer_gpus(again),
        _other_queues(again, reach),
        _other_priority(again, reach),
        _higher_limit(again),
    )
    for found in tries:
        if found is not None:
            yield found


def _topology(again: _Again) -> Relaxation | None:
    level = int(again.frame.work.required[again.slot])
    if level == ANYWHERE:
        return None
    return again.with_fields(
        {"required": ANYWHERE, "preferred": level},
        partial(
            again.starts,
            Change.TOPOLOGY,
            "preferred",
            f"Preferring one {LEVELS[level]} instead of requiring it, it would start on",
        ),
    )


def _other_classes(again: _Again) -> Relaxation | None:
    """Every class that it does not list, the cheapest by exchange rate first."""
    frame, slot = again.frame, again.slot
    listed = set(frame.work.wish[:, slot].tolist())
    for c in np.argsort(frame.nodes.rate, kind="stable").tolist():
        if c in listed:
            continue
        wish = np.full(frame.work.wish.shape[0], -1, np.int64)
        wish[0] = c
        found = again.with_fields(
            {"wish": wish},
            partial(
                again.starts,
                Change.GPU_CLASS,
                frame.class_names[c],
                "Accepting another class, it would start on",
            ),
        )
        if found:
            return found
    return None


def _fewer_cpus(again: _Again) -> Relaxation | None:
    """The most whole CPUs per member, below those asked for, with which it starts."""
    short = codes.NO_FREE_CPUS
    return _less_beside(again, short, CPUS, MILLI, Change.FEWER_CPUS, "CPUs per member")


def _less_memory(again: _Again) -> Relaxation | None:
    """The same for whole GiB."""
    short = codes.NO_FREE_MEMORY
    return _less_beside(again, short, MEMORY, 1024, Change.LESS_MEMORY, "GiB of memory per member")


def _less_beside(
    again: _Again, short: int, r: int, unit: int, change: Change, what: str
) -> Relaxation | None:
    """Where resource ``r``, in ``unit``, is short, or may be what no node has."""
    nodes_lack = again.reason == codes.NEVER_FITS and again.blame <= 0
    if again.reason != short and not nodes_lack:
        return None
    need = again.frame.work.need[:, again.slot]
    own = need[r] / unit

    def ask(whole: int) -> Relaxation | None:
        less = need.copy()
        less[r] = whole * unit
        text = f"With {whole} instead of {own:g} {what} it would start on"
        return again.with_fields({"need": less}, partial(again.starts, change, whole, text))

    return _largest(1, (int(need[r]) - 1) // unit, ask)


def _fewer_members(again: _Again) -> Relaxation | None:
    """The largest smaller gang that starts, found by halving."""
    least = int(again.frame.work.least[again.slot])

    def ask(members: int) -> Relaxation | None:
        return again.with_fields(
            {"least": members, "most": members},
            partial(
                again.starts,
                Change.FEWER_MEMBERS,
                members,
                f"With {members} instead of {least} members it would start on",
            ),
        )

    return _largest(1, least - 1, ask)


def _fewer_gpus(again: _Again) -> Relaxation | None:
    """The most whole GPUs per member, below those asked for, with which it starts."""
    gpus = int(again.frame.work.need[GPUS, again.slot])
    need = again.frame.work.need[:, again.slot]

    def ask(whole: int) -> Relaxation | None:
        fewer = need * whole * MILLI // gpus
        fewer[GPUS] = whole * MILLI
        return again.with_fields(
            {"need": fewer},
            partial(
                again.starts,
                Change.FEWER_GPUS,
                whole * MILLI,
                f"With {whole} instead of {amount(gpus)} GPUs per member, CPUs and memory in proportion,"
                " it would start on",
            ),
        )

    return _largest(1, (gpus - 1) // MILLI, ask)


def _largest(low: int, high: int, ask: Callable[[int], Relaxation | None]) -> Relaxation | None:
    best = None
    while low <= high:
        middle = (low + high + 1) // 2
        found = ask(middle)
        if found:
            best, low = found, middle + 1
        else:
            high = middle - 1
    return best


def _other_queues(again: _Again, reach: Reach) -> Relaxation | None:
    """The first of the person's other queues, by name, in which it starts."""
    frame, slot = again.frame, again.slot
    for name in sorted(reach.queues):
        queue = frame.queue_names.index(name)
        if queue == frame.work.queue[slot] or frame.tree.stop[queue] > 0:
            continue
        user = frame.user_in(slot, queue)
        found = again.with_fields(
            {"queue": queue, "user": user},
            partial(again.starts, Change.QUEUE, name, f"In queue {name} it would start on"),
        )
        if found:
            return found
    return None


def _other_priority(again: _Again, reach: Reach) -> Relaxation | None:
    """The lowest class of higher value, as preemptible as its own, that starts it; where it waits because
    it cannot be preempted, the preemptible class nearest in value.
    """
    frame, ranks = again.frame, again.frame.ranks
    own = int(frame.work.priority[again.slot])
    allowed = {frame.priority_names.index(name) for name in reach.priority_classes}
    above = ranks.value - ranks.value[own]
    if again.reason == codes.NON_PREEMPTIBLE:
        order, fit, how = np.abs(above), ranks.preemptible, ", which may be preempted,"
    else:
        order, fit, how = above, (above > 0) & (ranks.preemptible == ranks.preemptible[own]), ""
    for p in np.argsort(order, kind="stable").tolist():
        if p not in allowed or not fit[p]:
            continue
        name = frame.priority_names[p]
        text = f"With priority class {name}{how} it would start on"
        found = again.with_fields(
            {"priority": p}, partial(again.starts, Change.PRIORITY, name, text)
        )
        if found:
            return found
    return None


def _higher_limit(again: _Again) -> Relaxation | None:
    """Just so much more limit of the queue that stands in the way that the gang fits under it."""
    if again.reason not in (codes.AT_LIMIT, codes.NEVER_FITS) or again.blame <= 0:
        return None
    frame, slot, q, c = again.frame, again.slot, again.blame, again.gpu_class
    quotas = frame.quotas
    limit = again.held + int(frame.work.least[slot] * frame.work.need[GPUS, slot])
    kept = int(quotas.limit[c, q]), int(quotas.cap[c, q])
    if quotas.weight[c, q] <= 0 or kept[1] >= UNLIMITED:
        return None
    quotas.limit[c, q] = quotas.cap[c, q] = limit
    name = frame.queue_names[q]
    try:
        return again.starts(
            Change.LIMIT,
            limit,
            f"With a limit of {amount(limit)} for {name} it would start on",
            queue=name,
        )
    finally:
        quotas.limit[c, q], quotas.cap[c, q] = kept
