"""What would start a waiting workload now: the same cycle planned again with one input relaxed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from scheduling.engine import codes
from scheduling.engine.model import MILLI, Snapshot
from scheduling.engine.planner import plan_frame
from scheduling.engine.reasons.wording import amount, gpus_in_words
from scheduling.engine.snapshot.encode import encode
from scheduling.engine.snapshot.frame import Frame
from scheduling.engine.state.array_plan import ArrayPlan
from scheduling.engine.state.roles import preferred_only, required_by
from scheduling.engine.state.units import ANYWHERE, CPUS, FREE, GPUS, MEMORY, PENDING
from scheduling.engine.whatif.change import Change, Reach, Relaxation
from scheduling.engine.whatif.raised_limits import (
    higher_limit,
    more_for_user,
    more_hours,
    more_workloads,
)
from scheduling.engine.whatif.replan import Again

TENTH = MILLI // 10


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
    if frame.work.on_hold[slot] or plan.reason[slot] == codes.AWAITS_VICTIMS:
        return []
    with Again(frame, slot, plan) as again:
        return list(_found(again, reach))


def _is_leaf(frame: Frame, name: str) -> bool:
    queue = frame.queue_names.index(name)
    return bool(frame.tree.kid_start[queue] == frame.tree.kid_start[queue + 1])


def _found(again: Again, reach: Reach) -> Iterator[Relaxation]:
    tries = (
        _topology(again),
        _segments(again),
        _other_nodes(again),
        _other_classes(again),
        _less_beside(again, FEWER_CPUS),
        _less_beside(again, LESS_MEMORY),
        _fewer_members(again),
        _fewer_gpus(again),
        _other_queues(again, reach),
        _other_priority(again, reach),
        more_for_user(again),
        more_workloads(again),
        higher_limit(again),
        more_hours(again),
    )
    yield from filter(None, tries)


def _topology(again: Again) -> Relaxation | None:
    level = int(again.frame.work.required[again.slot])
    if level == ANYWHERE:
        return None
    name = again.frame.level_names[level]
    text = f"Preferring one {name} instead of requiring it, it would start on"
    fields = {"required": ANYWHERE, "preferred": level}
    return again.with_fields(fields, Change.TOPOLOGY, "preferred", text)


def _segments(again: Again) -> Relaxation | None:
    segment = int(again.frame.work.segment[again.slot])
    size, level = required_by(segment)
    if size == 1:
        return None
    text = (
        f"Preferring every {size} members in one {again.frame.level_names[level]} instead of requiring it,"
        " it would start on"
    )
    fields = {"segment": preferred_only(segment)}
    return again.with_fields(fields, Change.SEGMENTS, "preferred", text)


def _other_nodes(again: Again) -> Relaxation | None:
    """Every node that is open to work without constraints, where it may use some only."""
    everywhere = again.frame.open_to_all
    if int(again.frame.work.where[again.slot]) in (ANYWHERE, everywhere):
        return None
    text = "Without its node selector, node affinity and runtime class it would start on"
    return again.with_fields({"where": everywhere}, Change.NODES, "any", text)


def _other_classes(again: Again) -> Relaxation | None:
    """Every class that it does not list, the cheapest by exchange rate first."""
    frame, slot = again.frame, again.slot
    listed = set(frame.work.wish[:, slot].tolist())
    for c in np.argsort(frame.nodes.rate, kind="stable").tolist():
        if c in listed:
            continue
        wish = np.full(frame.work.wish.shape[0], -1, np.int64)
        wish[0] = c
        text = "Accepting another class, it would start on"
        found = again.with_fields({"wish": wish}, Change.GPU_CLASS, frame.class_names[c], text)
        if found:
            return found
    return None


FEWER_CPUS = (codes.NO_FREE_CPUS, CPUS, MILLI, Change.FEWER_CPUS, "CPUs per member")
LESS_MEMORY = (codes.NO_FREE_MEMORY, MEMORY, 1024, Change.LESS_MEMORY, "GiB of memory per member")
"""Of a resource beside GPUs: the reason where it is short, its number and unit, the change, in words."""


def _less_beside(again: Again, of: tuple[int, int, int, Change, str]) -> Relaxation | None:
    """The most whole CPUs or GiB per member, below those asked for, with which it starts: where such are
    short, or may be what no node has.
    """
    short, r, unit, change, what = of
    nodes_lack = again.reason == codes.NEVER_FITS and again.blame <= 0
    if _has_roles(again) or (again.reason != short and not nodes_lack):
        return None
    need = again.frame.work.need[:, again.slot]
    own = need[r] / unit

    def ask(whole: int) -> Relaxation | None:
        less = need.copy()
        less[r] = whole * unit
        text = f"With {whole} instead of {own:g} {what} it would start on"
        return again.with_fields({"need": less}, change, whole, text)

    return _largest(1, (int(need[r]) - 1) // unit, ask)


def _fewer_members(again: Again) -> Relaxation | None:
    """The largest smaller gang that starts, found by halving."""
    least = int(again.frame.work.least[again.slot])
    if _has_roles(again):
        return None
    unit, _ = required_by(int(again.frame.work.segment[again.slot]))

    def ask(units: int) -> Relaxation | None:
        members = units * unit
        fields = {"least": members, "most": members}
        text = f"With {members} instead of {least} members it would start on"
        return again.with_fields(fields, Change.FEWER_MEMBERS, members, text)

    return _largest(1, (least - 1) // unit, ask)


def _fewer_gpus(again: Again) -> Relaxation | None:
    """The most whole GPUs per member, below those asked for, with which it starts; else the largest share
    of one, in tenths, where others of the class take shares as well.
    """
    gpus = int(again.frame.work.need[GPUS, again.slot])
    if _has_roles(again):
        return None
    found = _largest(1, (gpus - 1) // MILLI, lambda whole: _with_gpus(again, whole * MILLI))
    if found is None and _shared(again):
        tenths = (min(gpus, MILLI) - 1) // TENTH
        found = _largest(1, tenths, lambda tenth: _with_gpus(again, tenth * TENTH))
    return found


def _with_gpus(again: Again, fewer: int) -> Relaxation | None:
    """With ``fewer`` milli-GPU per member."""
    need = again.frame.work.need[:, again.slot].copy()
    gpus = int(need[GPUS])
    need[: MEMORY + 1] = need[: MEMORY + 1] * fewer // gpus
    text = (
        f"With {amount(fewer)} instead of {gpus_in_words(gpus)} per member, CPUs and memory in proportion,"
        " it would start on"
    )
    return again.with_fields({"need": need}, Change.FEWER_GPUS, fewer, text)


def _has_roles(again: Again) -> bool:
    """Of a gang of unlike members no single number is another size."""
    return bool(again.frame.work.roles[0, again.slot] >= 0)


def _shared(again: Again) -> bool:
    """Whether anybody of its classes, or it itself, asks for a share of a GPU or holds one."""
    work = again.frame.work
    share = (work.need[GPUS] > 0) & (work.need[GPUS] < MILLI) & (work.phase != FREE)
    wishes = work.wish[:, again.slot]
    return bool(np.isin(work.wish[0, share], wishes[wishes >= 0]).any())


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


def _other_queues(again: Again, reach: Reach) -> Relaxation | None:
    """The first of the person's other queues, by name, in which it starts."""
    frame, slot = again.frame, again.slot
    for name in sorted(reach.queues):
        queue = frame.queue_names.index(name)
        if queue == frame.work.queue[slot] or frame.tree.stop[queue] > 0:
            continue
        user = frame.user_in(slot, queue)
        fields, text = {"queue": queue, "user": user}, f"In queue {name} it would start on"
        found = again.with_fields(fields, Change.QUEUE, name, text)
        if found:
            return found
    return None


def _other_priority(again: Again, reach: Reach) -> Relaxation | None:
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
        found = again.with_fields({"priority": p}, Change.PRIORITY, name, text)
        if found:
            return found
    return None
