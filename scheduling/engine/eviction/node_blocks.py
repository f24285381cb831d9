"""Bounds over blocks of nodes: what is free on one of them at most, what taking there costs at least.

A block holds ``BLOCK_SIZE`` neighbours of one class, by position in ``Nodes.of_class``.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.state.input import Nodes
from scheduling.engine.state.nodes import BLOCK_SIZE, NodeRoom
from scheduling.engine.state.units import GPUS
from scheduling.engine.state.victims import NodeBlocks


@inner
def block_of(position: int, c: int) -> int:
    """Of the node at ``position``, which is of class ``c``: no two classes share one."""
    return position // BLOCK_SIZE + c


@inner
def renew_free(blocks: NodeBlocks, room: NodeRoom, nodes: Nodes, position: Ints, c: int) -> None:
    """Bring ``most_free`` of class ``c`` up to date: only where nodes have changed."""
    first, last = nodes.class_start[c], nodes.class_start[c + 1]
    if blocks.seen[c] < room.changes.cleared_at:
        for b in range(block_of(first, c), block_of(last - 1, c) + 1):
            _renew_block(blocks, room, nodes, b, c)
    else:
        n = room.changes.newest[c]
        while n >= 0 and room.changes.changed_at[n] > blocks.seen[c]:
            _renew_block(blocks, room, nodes, block_of(position[n], c), c)
            n = room.changes.older[n]
    blocks.seen[c] = room.changes.clock


@inner
def _renew_block(blocks: NodeBlocks, room: NodeRoom, nodes: Nodes, b: int, c: int) -> None:
    first = max(nodes.class_start[c], (b - c) * BLOCK_SIZE)
    last = min(nodes.class_start[c + 1], (b - c + 1) * BLOCK_SIZE)
    most = room.free_later[GPUS, nodes.of_class[first]]
    for i in range(first + 1, last):
        most = max(most, room.free_later[GPUS, nodes.of_class[i]])
    blocks.most_free[b] = most


@inner
def forget_rates(blocks: NodeBlocks) -> None:
    """Nothing is to take anywhere."""
    for row in range(blocks.least_loss.shape[0]):
        for b in range(blocks.least_loss.shape[1]):
            blocks.least_loss[row, b] = np.inf
            blocks.most_given[row, b] = 0


@inner
def note_own(blocks: NodeBlocks, b: int, rate: float, search: int) -> None:
    """A search inside a leaf finds work of that leaf in block ``b``, at ``rate`` GPU-seconds by milli-GPU."""
    if blocks.own_at[b] == search:
        rate = min(rate, blocks.own_least_loss[b])
    blocks.own_at[b], blocks.own_least_loss[b] = search, rate
