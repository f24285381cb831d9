"""Sorting inside kernels: small, stable, and quick to compile."""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Floats, Ints


@inner
def order_of(keys: Floats) -> Ints:
    """Positions of ``keys`` in ascending order, equal ones as they stood (bottom-up merge sort)."""
    size = keys.size
    order, spare = np.arange(size), np.empty(size, np.int64)
    width = 1
    while width < size:
        for low in range(0, size, 2 * width):
            middle, high = min(low + width, size), min(low + 2 * width, size)
            i, j = low, middle
            if middle == high or keys[order[middle - 1]] <= keys[order[middle]]:
                for k in range(low, high):
                    spare[k] = order[k]
                continue
            for k in range(low, high):
                if i < middle and (j >= high or keys[order[i]] <= keys[order[j]]):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        order, spare = spare, order
        width *= 2
    return order
