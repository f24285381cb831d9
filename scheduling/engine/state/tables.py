"""Tables that a cycle fills, sized for a frame and used again by every cycle."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduling.engine.compile.structs import Ints
from scheduling.engine.model import MOST_ROLES
from scheduling.engine.reasons.figures import WIDEST
from scheduling.engine.state.axes import laid_out
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Holds, Nodes, Tree, Work
from scheduling.engine.state.nodes import BLOCK_SIZE, Domains, Mix, NodeIndex, NodeRoom, Seats
from scheduling.engine.state.order import (
    DUES,
    MOST_SHAPES,
    WORK_BY_SHAPE,
    Ordering,
    Refusals,
    Shapes,
)
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.units import GPUS
from scheduling.engine.state.victims import Candidates

INDEX_CELLS = 1 << 21
"""About how many cells (rows x nodes) an index has; at least ``FEWEST_ROWS`` rows."""
FEWEST_ROWS, MOST_ROWS = 64, 2048


class Buffers(NamedTuple):
    division: Division
    room: NodeRoom
    queues: Queues
    seats: Seats
    out: Decisions
    candidates: Candidates
    guard: Division
    ordering: Ordering
    shapes: Shapes
    mix: Mix
    index: NodeIndex  # type: ignore[assignment] # nobody asks for tuple.index


def buffers_for(
    tree: Tree, nodes: Nodes, work: Work, holds: Holds, pairs: int, ranks: int, pool: int
) -> Buffers:
    """Fresh tables for these numbers of queues, nodes, slots, holds and priority classes; ``pairs`` of
    queue and user; at least ``pool`` seats in all decisions together.
    """
    domains = _domains(nodes)
    sizes = _sizes(tree, nodes, work, holds, domains)
    sizes |= {"pair": pairs, "rank": ranks, "seat": max(pool, 4 * sizes["member"] + sizes["slot"])}
    refusals = laid_out(Refusals, sizes, epoch=1, change=1, asked_cell=-1)
    return Buffers(
        division=laid_out(Division, sizes),
        room=laid_out(
            NodeRoom, sizes, gpu_class=nodes.gpu_class, allowed=nodes.allowed,
            allowed_kind=nodes.allowed_kind, next_on_machine=_rings(nodes.domain[-1]),
        ),
        queues=laid_out(Queues, sizes),
        seats=laid_out(Seats, sizes),
        out=laid_out(Decisions, sizes),
        candidates=laid_out(Candidates, sizes),
        guard=laid_out(Division, sizes),
        ordering=laid_out(Ordering, sizes),
        shapes=laid_out(Shapes, sizes, refusals=refusals),
        mix=laid_out(Mix, sizes, learnt_at=-1),
        index=laid_out(NodeIndex, sizes, domains=domains),
    )  # fmt: skip


def _sizes(tree: Tree, nodes: Nodes, work: Work, holds: Holds, domains: Domains) -> dict[str, int]:
    """How many there are of what tables are laid out by."""
    slots, size = work.phase.size, nodes.gpu_class.size
    members = max(int(work.most.max(initial=1)) * 2, int(nodes.size[GPUS].sum()) // 1000 + 1)
    shapes = min(slots, max(MOST_SHAPES, slots // WORK_BY_SHAPE)) + 1
    class_blocks = size // BLOCK_SIZE + 1 + nodes.rate.size
    return {
        "class": nodes.rate.size, "queue": tree.parent.size, "slot": slots, "node": size,
        "resource": nodes.size.shape[0],
        "hold": holds.node.size, "holder": max(holds.node.size, slots), "figure": WIDEST,
        "device": int(nodes.size[GPUS].max(initial=0)) // 1000, "member": members,
        "trial": 2 * slots + members, "shape": shapes, "cell": shapes * DUES,
        "row": min(MOST_ROWS, max(FEWEST_ROWS, INDEX_CELLS // max(size, 1))),
        "place": 1 << (2 * shapes).bit_length(), "mix": 1 << max(4, 2 * slots).bit_length(),
        "block": size // BLOCK_SIZE + 1,
        "class_block": class_blocks, "on_heap": max(size, class_blocks),
        "domain": int(domains.base[-1]),
    }  # fmt: skip


def empty_division(classes: int, queues: int) -> Division:
    division: Division = laid_out(Division, {"class": classes, "queue": queues})
    return division


def _rings(machine: Ints) -> Ints:
    """For each row the next of the same machine; itself where it is the only one."""
    order = np.argsort(machine, kind="stable")
    sorted_ = machine[order]
    is_last = np.append(sorted_[1:] != sorted_[:-1], True)[: order.size]
    first = order[np.searchsorted(sorted_, sorted_)]
    ring = np.zeros(machine.size, np.int64)
    ring[order] = np.where(is_last, first, np.roll(order, -1))
    return ring


def _domains(nodes: Nodes) -> Domains:
    size = nodes.gpu_class.size
    wide = nodes.domain[:-1]
    many = wide.max(axis=1, initial=-1) + 1
    member = np.argsort(wide, axis=1, kind="stable")
    begin = np.zeros((len(wide), int(many.max(initial=0)) + 1), np.int64)
    for level in range(len(wide)):
        labels = nodes.domain[level, member[level]]
        begin[level] = np.searchsorted(labels, np.arange(begin.shape[1]))
    position = np.zeros(size, np.int64)
    position[nodes.of_class] = np.arange(size)
    return Domains(np.append(0, np.cumsum(many)), member, begin, position, np.arange(size))


def empty_work(slots: int, wishes: int, resources: int = 3) -> Work:
    """A table of so many workloads that accept up to ``wishes`` classes each."""
    ints: Any = lambda fill=0: np.full(slots, fill, np.int64)  # noqa: E731
    floats: Any = lambda fill=0.0: np.full(slots, fill)  # noqa: E731
    flags: Any = lambda: np.zeros(slots, np.bool_)  # noqa: E731
    return Work(
        phase=ints(), queue=ints(-1), user=ints(), priority=ints(-1),
        need=np.zeros((resources, slots), np.int64), beside=ints(),
        least=ints(1), most=ints(1), elastic=flags(),
        wish=np.full((wishes, slots), -1, np.int64), where=ints(-1), required=ints(-1), preferred=ints(-1),
        segment=ints(),
        submitted=floats(), predicted=floats(np.inf), tie=ints(), on_hold=flags(), claims=flags(),
        room_due=floats(np.inf), taken=ints(),
        started=floats(-np.inf), checkpointed=floats(-np.inf), restart=floats(), stale=floats(np.inf),
        leaving=flags(), gpu_class=ints(-1), members=ints(), ends_within=floats(np.inf),
        evictions=ints(), evicted=floats(-np.inf), evicted_for=ints(-1), part_of=ints(-1),
        rank=floats(np.inf), virtual=floats(np.inf), saved=floats(),
        roles=np.full((MOST_ROLES, slots), -1, np.int64),
        role_members=np.zeros((MOST_ROLES, slots), np.int64), elastic_role=ints(),
    )  # fmt: skip
