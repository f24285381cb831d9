"""FGD's protocol on the engine's own placement: pods arrive one by one and never leave.

Weng et al., "Beware of Fragmentation" (USENIX ATC 2023), section 6: a list of pods in random order, drawn
from again until the pods ask for as many GPUs as there are; what no node takes is dropped. The figure is
the share of GPUs allocated then.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from scheduling.engine import model as m
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.compile.structs import Ints
from scheduling.engine.order.pending import update_pending
from scheduling.engine.placement.node_index import pick_node, row_of, sum_up
from scheduling.engine.placement.node_room import clear_room, touch_all
from scheduling.engine.placement.place import place
from scheduling.engine.placement.unlike import all_fit
from scheduling.engine.snapshot.encode import encode
from scheduling.engine.snapshot.frame import Frame
from scheduling.engine.state.nodes import BLOCK_SIZE
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import ANYWHERE, NOW
from workshop.benches.engine.openb import OpenbNode, OpenbPod

LEARN_EVERY = 1000
"""Arrivals between two looks at the demand mix; a cycle of the engine learns it afresh."""


def frame_of(nodes: list[OpenbNode], pods: list[OpenbPod]) -> Frame:
    """All pods of the list pending, in slots in their order; GPU models are the classes.

    So the demand mix is that of the whole list, as FGD's typical pods are.
    """
    classes, machine = machines(nodes)
    models = tuple(c.name for c in classes)
    snapshot = m.Snapshot(
        now=datetime(2023, 1, 1, tzinfo=UTC),
        gpu_classes=classes,
        nodes=machine,
        queues=(m.Queue("all"),),
        priority_classes=(m.PriorityClass("pod"),),
        workloads=tuple(
            m.Workload(
                f"{i:06}", "all", "pod", datetime(2023, 1, 1, tzinfo=UTC), gpus=p.gpus, cpus=p.cpus,
                memory_mib=p.memory_mib, gpu_classes=p.models or models,
            )
            for i, p in enumerate(pods)
        ),
    )  # fmt: skip
    return encode(snapshot)


def machines(nodes: list[OpenbNode]) -> tuple[tuple[m.GpuClass, ...], tuple[m.Node, ...]]:
    """GPU models as classes, by name, and the nodes."""
    return (
        tuple(m.GpuClass(model) for model in sorted({node.model for node in nodes})),
        tuple(m.Node(n.name, n.model, n.gpus * m.MILLI, n.cpus, n.memory_mib) for n in nodes),
    )


def arrivals(frame: Frame, pods: int, seed: int) -> Ints:
    """Slots in order of arrival, until they ask for all GPUs: a shuffle of the list, then draws from it."""
    dice = np.random.default_rng(seed)
    capacity = int(frame.nodes.capacity.sum())
    order = dice.permutation(pods)
    sums = frame.work.need[0, order].cumsum()
    while sums[-1] < capacity:
        more = dice.integers(0, pods, 1024)
        order = np.concatenate((order, more))
        sums = np.concatenate((sums, sums[-1] + frame.work.need[0, more].cumsum()))
    return order[: int(np.searchsorted(sums, capacity)) + 1]


@dataclass(frozen=True, slots=True)
class Run:
    """``pods`` in order of arrival, the ``node`` of each or -1, and the GPU of which it has a share or -1."""

    pods: list[OpenbPod]
    node: Ints
    device: Ints
    allocated_pct: float

    def first_refused(self) -> int:
        """Number of the first pod without a node; all, if each has one."""
        refused = np.flatnonzero(self.node < 0)
        return int(refused[0]) if refused.size else self.node.size


def place_all(frame: Frame, pods: list[OpenbPod], seed: int) -> Run:
    """The arrivals of ``seed`` on the empty cluster, nodes named afresh at random before every placement."""
    order = arrivals(frame, len(pods), seed)
    node, device = np.full(order.size, -1, np.int64), np.full(order.size, -1, np.int64)
    fill(frame.world, order, seed, LEARN_EVERY, node, device)
    given = frame.work.need[0, order[node >= 0]].sum()
    share = float(100 * given / frame.nodes.capacity.sum())
    return Run([pods[i] for i in order], node, device, share)


@kernel
def fill(world: Any, order: Ints, seed: int, every: int, node: Ints, device: Ints) -> None:
    """Place ``order`` one by one on empty nodes; writes where the placed sit to ``node`` and ``device``."""
    np.random.seed(seed)
    update_pending(
        world.ordering, world.shapes, world.work, world.ranks, world.rules.now, world.rules.shortest
    )
    clear_room(world.nodes, world.room)
    for c in range(world.room.open.size):
        world.room.open[c] = world.nodes.capacity[c]
    for i in range(order.size):
        if i % every == 0:
            touch_all(world.room)
        _rename(world, order[i])
        c = _choose_class(world, order[i], NOW)
        if c >= 0 and place(world, order[i], c, 1, NOW) == 1:
            node[i], device[i] = world.seats.node[0], world.seats.device[0]


@inner
def _choose_class(world: Session, w: int, when: int) -> int:
    """Of the classes ``w`` may run on, the one where a member of it goes at the lowest score, the first
    on ties; -1 if none takes its least members.
    """
    work, index, best, lowest = world.work, world.index, -1, 0.0
    for k in range(work.wish.shape[0]):
        c = work.wish[k, w]
        if c < 0:
            break
        if not all_fit(world, w, c, work.least[w], when):
            continue
        row = row_of(world, w, c, when)
        n = pick_node(world, row, c, 1, ANYWHERE, 0)
        score = index.score[row, index.domains.position[n]]
        if best < 0 or score < lowest:
            best, lowest = c, score
    return best


@inner
def _rename(world: Any, w: int) -> None:
    """Nodes get other names, so ties between them fall otherwise."""
    index, nodes = world.index, world.nodes
    np.random.shuffle(index.domains.name_rank)
    for k in range(world.work.wish.shape[0]):
        c = world.work.wish[k, w]
        if c < 0:
            return
        row = row_of(world, w, c, NOW)
        last = (nodes.class_start[c + 1] + BLOCK_SIZE - 1) // BLOCK_SIZE
        for b in range(nodes.class_start[c] // BLOCK_SIZE, last):
            sum_up(index, row, b)
