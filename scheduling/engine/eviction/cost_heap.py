"""A binary heap of nodes by cost, lowest node on ties, in which any node's cost may change."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.state.victims import Candidates


@inner
def push(candidates: Candidates, n: int, cost: float) -> None:
    at = candidates.heap.size[0]
    candidates.heap.size[0] += 1
    candidates.heap.node[at], candidates.heap.position[n], candidates.heap.cost[n] = n, at, cost
    _rise(candidates, at)


@inner
def change(candidates: Candidates, n: int, cost: float) -> None:
    candidates.heap.cost[n] = cost
    _rise(candidates, candidates.heap.position[n])
    _sink(candidates, candidates.heap.position[n])


@inner
def _rise(candidates: Candidates, at: int) -> None:
    while at > 0 and _cheaper(candidates, at, (at - 1) // 2):
        _swap(candidates, at, (at - 1) // 2)
        at = (at - 1) // 2


@inner
def _sink(candidates: Candidates, at: int) -> None:
    while True:
        least = at
        for kid in (2 * at + 1, 2 * at + 2):
            if kid < candidates.heap.size[0] and _cheaper(candidates, kid, least):
                least = kid
        if least == at:
            return
        _swap(candidates, at, least)
        at = least


@once
def _cheaper(candidates: Candidates, i: int, j: int) -> bool:
    a, b = candidates.heap.node[i], candidates.heap.node[j]
    return candidates.heap.cost[a] < candidates.heap.cost[b] or (
        candidates.heap.cost[a] == candidates.heap.cost[b] and a < b
    )


@once
def _swap(candidates: Candidates, i: int, j: int) -> None:
    a, b = candidates.heap.node[i], candidates.heap.node[j]
    candidates.heap.node[i], candidates.heap.node[j] = b, a
    candidates.heap.position[a], candidates.heap.position[b] = j, i
