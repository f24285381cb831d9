"""A binary heap of nodes by cost, lowest node on ties, in which any node's cost may change."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.state.victims import CostHeap


@inner
def push(heap: CostHeap, n: int, cost: float) -> None:
    at = heap.size[0]
    heap.size[0] += 1
    heap.node[at], heap.position[n], heap.cost[n] = n, at, cost
    _rise(heap, at)


@inner
def change(heap: CostHeap, n: int, cost: float) -> None:
    heap.cost[n] = cost
    _rise(heap, heap.position[n])
    _sink(heap, heap.position[n])


@inner
def drop_first(heap: CostHeap) -> None:
    """Whoever costs least leaves."""
    heap.size[0] -= 1
    n, last = heap.node[0], heap.node[heap.size[0]]
    heap.node[0], heap.position[last], heap.position[n] = last, 0, -1
    if heap.size[0] > 0:
        _sink(heap, 0)


@inner
def forget(heap: CostHeap) -> None:
    """Nobody stands on it."""
    for at in range(heap.size[0]):
        heap.position[heap.node[at]] = -1
    heap.size[0] = 0


@inner
def _rise(heap: CostHeap, at: int) -> None:
    while at > 0 and _cheaper(heap, at, (at - 1) // 2):
        _swap(heap, at, (at - 1) // 2)
        at = (at - 1) // 2


@inner
def _sink(heap: CostHeap, at: int) -> None:
    while True:
        least = at
        for kid in (2 * at + 1, 2 * at + 2):
            if kid < heap.size[0] and _cheaper(heap, kid, least):
                least = kid
        if least == at:
            return
        _swap(heap, at, least)
        at = least


@inner
def _cheaper(heap: CostHeap, i: int, j: int) -> bool:
    a, b = heap.node[i], heap.node[j]
    return heap.cost[a] < heap.cost[b] or (heap.cost[a] == heap.cost[b] and a < b)


@inner
def _swap(heap: CostHeap, i: int, j: int) -> None:
    a, b = heap.node[i], heap.node[j]
    heap.node[i], heap.node[j] = b, a
    heap.position[a], heap.position[b] = j, i
