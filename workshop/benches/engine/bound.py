"""The most GPUs that any placement of pods could allocate, by a linear programme.

It is blind to CPUs, memory and nodes: pods of whole GPUs count by what they ask for, and a GPU that is
shared holds any shares that add up to no more than one (Gilmore and Gomory's cutting stock programme,
Operations Research 1961). Ways to fill a GPU come in by column generation: the next one is the knapsack
that is worth most at the programme's own prices.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import linprog

ONE = 1000
NEAR = 1e-9
DEAR = 100.0
"""Price of a GPU beyond those there are, where one that is there gives at most 1."""


def most_allocated(demand: Mapping[int, int], early: Mapping[int, int], gpus: int) -> float:
    """Milli-GPU that can be allocated of ``gpus`` whole ones: from ``kept`` to ``asked`` pods of each size.

    Sizes are milli-GPU. Raises ArithmeticError where the GPUs do not hold those kept.
    """
    sizes = sorted(size for size in demand if 0 < size < ONE)
    ways = [
        tuple(ONE // size * (i == k) for i in range(len(sizes))) for k, size in enumerate(sizes)
    ]
    while True:
        given, worth, price, beyond = _solve(sizes, ways, demand, early, gpus)
        best, way = _knapsack(sizes, worth)
        if best <= price + NEAR:
            if beyond > NEAR * gpus:
                raise ArithmeticError(f"{gpus} GPUs do not hold those kept")
            return given
        ways.append(way)


def _solve(
    sizes: list[int], ways: list[tuple[int, ...]], demand: Mapping[int, int], early: Mapping[int, int],
    gpus: int,
) -> tuple[float, list[float], float, float]:  # fmt: skip
    """What is allocated, what a pod of each size is worth, the price of a GPU, and GPUs beyond ``gpus``.

    Variables: pods of each size, GPUs of whole pods, GPUs filled in each way, and GPUs beyond those there
    are, too dear to be bought once enough ways are known.
    """
    many = len(sizes)
    whole = [
        sum(size // ONE * count for size, count in pods.items() if size >= ONE)
        for pods in (early, demand)
    ]
    gain = [size / ONE for size in sizes] + [1.0] + [0.0] * len(ways) + [-DEAR]
    table = np.zeros((many + 1, len(gain)))
    table[:many, :many] = np.eye(many)
    table[:many, many + 1 : -1] = -np.array(ways).reshape(len(ways), many).T
    table[many, many:-1], table[many, -1] = 1.0, -1.0
    bounds = [(early.get(size, 0), demand[size]) for size in sizes]
    found = linprog(
        -np.array(gain),
        A_ub=table,
        b_ub=np.append(np.zeros(many), gpus),
        bounds=[*bounds, (whole[0], whole[1])] + [(0, None)] * (len(ways) + 1),
        method="highs-ds",
    )
    if found.status != 0:
        raise ArithmeticError(f"HiGHS: {found.message}")
    prices = [-float(price) for price in found.ineqlin.marginals]
    return -float(found.fun) * ONE, prices[:many], prices[many], float(found.x[-1])


def _knapsack(sizes: list[int], worth: list[float]) -> tuple[float, tuple[int, ...]]:
    """The shares of one GPU that are worth most together, by number of each size."""
    best, last = [0.0] * (ONE + 1), [-1] * (ONE + 1)
    for room in range(1, ONE + 1):
        best[room], last[room] = best[room - 1], -1
        for i, size in enumerate(sizes):
            if size <= room and best[room - size] + worth[i] > best[room] + NEAR:
                best[room], last[room] = best[room - size] + worth[i], i
    way, room = [0] * len(sizes), ONE
    while room > 0:
        if last[room] < 0:
            room -= 1
        else:
            way[last[room]] += 1
            room -= sizes[last[room]]
    return best[ONE], tuple(way)
