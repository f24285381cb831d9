"""Binary min-heaps of integers inside slices of one array: the lowest comes first."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints


@inner
def push(heap: Ints, base: int, size: int, value: int) -> int:
    """Adds ``value`` to the heap of ``size`` entries that starts at ``base``; returns the new size."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if heap[base + parent] <= value:
            break
        heap[base + at] = heap[base + parent]
        at = parent
    heap[base + at] = value
    return size + 1


@inner
def pop(heap: Ints, base: int, size: int) -> int:
    """Removes the smallest entry, which stands at ``base``; returns the new size."""
    size -= 1
    value = heap[base + size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[base + child + 1] < heap[base + child]:
            child += 1
        if heap[base + child] >= value:
            break
        heap[base + at] = heap[base + child]
        at = child
    heap[base + at] = value
    return size
