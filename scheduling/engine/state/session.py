"""Everything one cycle reads and writes, as one struct; tables are sized for a frame and used again by
every cycle.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduling.engine.compile.structs import Ints, declare, laid_out
from scheduling.engine.model import MOST_ROLES
from scheduling.engine.reasons.figures import WIDEST
from scheduling.engine.state.decisions import Decisions
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


@declare
class Session(NamedTuple):
    tree: Tree
    quotas: Quotas
    nodes: Nodes
    work: Work
    ranks: Ranks
    holds: Holds
    rules: Rules
    division: Division
    room: NodeRoom
    queues: Queues
    seats: Seats
    out: Decisions
    candidates: Candidates
    users: Users
    former: Quotas  # what was in force before a lowering
    guard: Division  # the division of those
    ordering: Ordering
    shapes: Shapes
    index: NodeIndex  # type: ignore[assignment] # nobody asks a struct for tuple.index
    pool: Pool
    mix: Mix


def session_for(pairs: int, seats: int, **given: Any) -> Session:
    """A session of what is ``given``, by its fields, with fresh tables beside it for ``pairs`` of queue and
    user, and at least so many ``seats`` in all decisions together.
    """
    tree, nodes, work, holds = (given[name] for name in ("tree", "nodes", "work", "holds"))
    domains = _domains(nodes)
    sizes = _sizes(tree, nodes, work, holds, domains) | {"pair": pairs}
    sizes |= {
        "rank": given["ranks"].value.size,
        "seat": max(seats, 4 * sizes["member"] + sizes["slot"]),
    }
    refusals = laid_out(Refusals, sizes, epoch=1, change=1, asked_cell=-1)
    session: Session = laid_out(
        Session, sizes, **given,
        room=laid_out(
            NodeRoom, sizes, gpu_class=nodes.gpu_class, allowed=nodes.allowed,
            allowed_kind=nodes.allowed_kind, next_on_machine=_rings(nodes.domain[-1]),
        ),
        shapes=laid_out(Shapes, sizes, refusals=refusals),
        mix=laid_out(Mix, sizes, learnt_at=-1),
        index=laid_out(NodeIndex, sizes, domains=domains),
    )  # fmt: skip
    return session


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
    sizes = {"slot": slots, "preference": wishes, "resource": resources, "role": MOST_ROLES}
    work: Work = laid_out(Work, sizes)
    return work
