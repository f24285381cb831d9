"""What must hold of the tables behind every plan, read beside the decisions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from scheduling.engine import Frame, codes
from scheduling.engine.state.units import GPUS, RUNNING


def check_state(frame: Frame) -> None:
    """Raises AssertionError where the tables of a frame that was just planned contradict its decisions."""
    _check_order(frame)
    _check_usage(frame)
    _check_room(frame)
    assert not frame.buffers.candidates.log.members_given.any(), "members given up are remembered"


def _check_order(frame: Frame) -> None:
    """Each decision stands in the order once."""
    out = frame.buffers.out
    order = out.order[: int(out.size[0])]
    assert np.unique(order).size == order.size
    assert set(np.flatnonzero(out.listed).tolist()) <= set(order.tolist())


def _check_usage(frame: Frame) -> None:
    """Queues hold what runs after all decisions, and those above what those below hold together."""
    usage = frame.buffers.queues.usage
    assert any(np.array_equal(usage.gpus, held) for held in _held(frame)), (
        "usage differs from what runs"
    )
    assert (usage.held_fixed <= usage.gpus).all()
    assert (usage.held_fixed >= 0).all()


def _held(frame: Frame) -> Iterator[Any]:
    """Milli-GPU [class, queue]. A victim of a claim that lapses in the plan keeps its own seats, unless
    somebody else claims them."""
    work, out, parent = frame.work, frame.buffers.out, frame.tree.parent
    lapsed = np.isin(work.evicted_for, work.tie[out.lapsed >= 0])
    spared = np.flatnonzero((work.phase == RUNNING) & work.leaving & (work.queue > 0) & lapsed)
    for keeps in product((False, True), repeat=spared.size):
        held = held_after(frame)
        for w in spared[list(keeps)]:
            held[work.gpu_class[w], work.queue[w]] += work.members[w] * work.need[GPUS, w]
        for q in range(parent.size - 1, 0, -1):
            held[:, parent[q]] += held[:, q]
        yield held


def held_after(frame: Frame) -> Any:
    """Milli-GPU [class, leaf] of what holds quota once the plan is carried out."""
    work, out = frame.work, frame.buffers.out
    held = np.zeros_like(frame.buffers.queues.usage.gpus)
    for w in np.flatnonzero((work.phase == RUNNING) & ~work.leaving & (work.queue > 0)):
        held[work.gpu_class[w], work.queue[w]] += work.members[w] * work.need[GPUS, w]
    for w in out.order[: int(out.size[0])].tolist():
        c, q, gpus = out.gpu_class[w], work.queue[w], int(work.need[GPUS, w])
        action, promised = out.action[w], out.reason[w] == codes.AWAITS_VICTIMS
        if action == codes.ADMIT or promised:
            held[c, q] += out.members[w] * gpus
        elif action == codes.EVICT:
            held[work.gpu_class[w], q] -= work.members[w] * gpus
        elif action in (codes.GROW, codes.SHRINK):
            held[work.gpu_class[w], q] += (out.members[w] - work.members[w]) * gpus
    return held


def _check_room(frame: Frame) -> None:
    """No node has more free than it has, and nothing is pledged that is not free."""
    room, size = frame.buffers.room, frame.nodes.size
    assert (room.free_now <= size).all()
    assert (room.pledged >= 0).all()
    assert (room.pledged[GPUS] <= np.maximum(room.free_now[GPUS], 0)).all()
