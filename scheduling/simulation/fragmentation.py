"""FGD's protocol on the engine's own placement: pods arrive one by one and never leave.

Weng et al., "Beware of Fragmentation" (USENIX ATC 2023), section 6: a list of pods in random order, drawn
from again until the pods ask for as many GPUs as there are; what no node takes is dropped. The figure is
the share of GPUs allocated then.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from scheduling.engine import model as m
from scheduling.engine.arrays import NOW, Ints
from scheduling.engine.compiled import inner, kernel
from scheduling.engine.encode import encode
from scheduling.engine.frame import Frame
from scheduling.engine.index import BLOCK_SIZE, row_of, sum_up
from scheduling.engine.line import renew
from scheduling.engine.placement import choose_class, place
from scheduling.engine.prepare import clear_room
from scheduling.engine.seating import touch_all

from .traces.openb import OpenbNode, OpenbPod

LEARN_EVERY = 1000
"""Arrivals between two looks at the demand mix; a cycle of the engine learns it afresh."""


def frame_of(nodes: list[OpenbNode], pods: list[OpenbPod]) -> Frame:
    """All pods of the list pending, in slots in their order; GPU models are the classes.

    So the demand mix is that of the whole list, as FGD's typical pods are.
    """
    models = sorted({node.model for node in nodes})
    snapshot = m.Snapshot(
        now=datetime(2023, 1, 1, tzinfo=UTC),
        gpu_classes=tuple(m.GpuClass(model) for model in models),
        nodes=tuple(
            m.Node(n.name, n.model, n.gpus * m.MILLI, n.cpus, n.memory_mib) for n in nodes
        ),
        queues=(m.Queue("all"),),
        priority_classes=(m.PriorityClass("pod"),),
        workloads=tuple(
            m.Workload(
                f"{i:06}", "all", "pod", datetime(2023, 1, 1, tzinfo=UTC), gpus=p.gpus, cpus=p.cpus,
                memory_mib=p.memory_mib, gpu_classes=p.models or tuple(models),
            )
            for i, p in enumerate(pods)
        ),
    )  # fmt: skip
    return encode(snapshot)


def arrivals(frame: Frame, pods: int, seed: int) -> Ints:
    """Slots in order of arrival, until they ask for all GPUs: a shuffle of the list, then draws from it."""
    dice = np.random.default_rng(seed)
    capacity = int(frame.nodes.capacity.sum())
    order = dice.permutation(pods)
    asked = frame.work.need[0, order].cumsum()
    while asked[-1] < capacity:
        more = dice.integers(0, pods, 1024)
        order = np.concatenate((order, more))
        asked = np.concatenate((asked, asked[-1] + frame.work.need[0, more].cumsum()))
    return order[: int(np.searchsorted(asked, capacity)) + 1]


def allocated_pct(frame: Frame, pods: int, seed: int) -> float:
    """Share of GPUs allocated at the end, in %, nodes named afresh at random before every placement."""
    given = fill(frame.world, arrivals(frame, pods, seed), seed, LEARN_EVERY)
    return float(100 * given / frame.nodes.capacity.sum())


@kernel
def fill(world: Any, order: Ints, seed: int, every: int) -> int:
    """Place ``order`` one by one on empty nodes; returns the milli-GPU that were given."""
    np.random.seed(seed)
    renew(world.line, world.memo, world.work, world.ranks, world.rules.now, world.rules.shortest)
    clear_room(world)
    given = 0
    for c in range(world.room.open.size):
        world.room.open[c] = world.nodes.capacity[c]
    for i in range(order.size):
        if i % every == 0:
            touch_all(world.room)
        _rename(world, order[i])
        c = choose_class(world, order[i], NOW)
        if c >= 0:
            given += place(world, order[i], c, 1, NOW) * world.work.need[0, order[i]]
    return int(given)


@inner
def _rename(world: Any, w: int) -> None:
    """Nodes get other names, so ties between them fall otherwise."""
    index, nodes = world.index, world.nodes
    np.random.shuffle(index.order)
    for k in range(world.work.wish.shape[0]):
        c = world.work.wish[k, w]
        if c < 0:
            return
        row = row_of(world, w, c, NOW)
        last = (nodes.class_start[c + 1] + BLOCK_SIZE - 1) // BLOCK_SIZE
        for b in range(nodes.class_start[c] // BLOCK_SIZE, last):
            sum_up(index, row, b)
