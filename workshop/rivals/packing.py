"""Where whole GPUs go on equal nodes, compiled: the placement of the published comparisons.

Up to a node's worth goes to the fullest node that fits, the lowest index on ties. More takes the lowest-index
wholly free nodes and puts the remainder on the freest other node. A job that does not fit leaves no trace.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]


@njit(cache=True)
def place(free: Ints, per_node: int, gpus: int, nodes: Ints, sizes: Ints) -> int:
    """Takes ``gpus`` from ``free`` (GPUs by node); writes node and GPUs taken to ``nodes`` and ``held``.

    Returns how many nodes were used, 0 when it does not fit (then ``free`` is as before).
    """
    if gpus <= per_node:
        node = fullest(free, gpus)
        if node < 0:
            return 0
        nodes[0], sizes[0] = node, gpus
        free[node] -= gpus
        return 1
    return place_across(free, per_node, gpus, nodes, sizes)


@njit(cache=True)
def fullest(free: Ints, gpus: int) -> int:
    best = -1
    for node in range(len(free)):
        if free[node] >= gpus and (best < 0 or free[node] < free[best]):
            best = node
            if free[node] == gpus:
                break
    return best


@njit(cache=True)
def place_across(free: Ints, per_node: int, gpus: int, nodes: Ints, sizes: Ints) -> int:
    whole, rest = gpus // per_node, gpus % per_node
    used = 0
    for node in range(len(free)):
        if used == whole:
            break
        if free[node] == per_node:
            nodes[used], sizes[used] = node, per_node
            free[node] = 0
            used += 1
    last = freest(free) if used == whole and rest else -1
    if used < whole or (rest and (last < 0 or free[last] < rest)):
        release(free, nodes, sizes, used)
        return 0
    if rest:
        nodes[used], sizes[used] = last, rest
        free[last] -= rest
        used += 1
    return used


@njit(cache=True)
def freest(free: Ints) -> int:
    best = -1
    for node in range(len(free)):
        if best < 0 or free[node] > free[best]:
            best = node
    return best


@njit(cache=True)
def release(free: Ints, nodes: Ints, sizes: Ints, used: int) -> None:
    for i in range(used):
        free[nodes[i]] += sizes[i]
