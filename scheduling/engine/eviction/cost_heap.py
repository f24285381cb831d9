"""A binary heap of nodes by cost, lowest node on ties, in which any node's cost may change."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.state.victims import Prey


@inner
def push(prey: Prey, n: int, cost: float) -> None:
    at = prey.size[0]
    prey.size[0] += 1
    prey.heap[at], prey.spot[n], prey.cost[n] = n, at, cost
    _rise(prey, at)


@inner
def change(prey: Prey, n: int, cost: float) -> None:
    prey.cost[n] = cost
    _rise(prey, prey.spot[n])
    _sink(prey, prey.spot[n])


@inner
def _rise(prey: Prey, at: int) -> None:
    while at > 0 and _cheaper(prey, at, (at - 1) // 2):
        _swap(prey, at, (at - 1) // 2)
        at = (at - 1) // 2


@inner
def _sink(prey: Prey, at: int) -> None:
    while True:
        least = at
        for kid in (2 * at + 1, 2 * at + 2):
            if kid < prey.size[0] and _cheaper(prey, kid, least):
                least = kid
        if least == at:
            return
        _swap(prey, at, least)
        at = least


@once
def _cheaper(prey: Prey, i: int, j: int) -> bool:
    a, b = prey.heap[i], prey.heap[j]
    return prey.cost[a] < prey.cost[b] or (prey.cost[a] == prey.cost[b] and a < b)


@once
def _swap(prey: Prey, i: int, j: int) -> None:
    a, b = prey.heap[i], prey.heap[j]
    prey.heap[i], prey.heap[j] = b, a
    prey.spot[a], prey.spot[b] = j, i
