"""The Philly trace as published comparisons replay it: window, nodes, and order within one second.

The figures published for the Philly trace (168,591.00 s for strict FIFO on static clusters, say) come from an
unstable sort of the whole file: a median-of-three quicksort that leaves runs of up to 16 to an insertion
sort, which is what ``argsort`` of numpy does to timestamps by default. That order is part of their input, so
it is written down here instead of resting on a library's internals.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from numba import njit

from scheduling.simulation.traces import Trace, in_file_order
from workshop.simulator.recordings import read_recorded

Ints = npt.NDArray[np.int64]
SMALL = 16

TIGHT_NODES: Mapping[str, int] = {
    "6214e9": 9, "7f04ca": 12, "11cb48": 3, "b436b2": 6, "ee9e8c": 25, "e13805": 4,
    "6c71a0": 9, "2869ce": 9, "ed69ec": 1, "103959": 4, "0e4a51": 9,
}  # fmt: skip
"""Nodes by virtual cluster that the busy two months just fill, 91 in all; published comparisons use them."""

BUSY_FROM = datetime(2017, 10, 1, tzinfo=UTC)
BUSY_TO = datetime(2017, 11, 30, 23, 59, tzinfo=UTC)
"""The two months that published comparisons replay, both ends included."""


class Ties(StrEnum):
    FILE = "file"
    PUBLISHED = "published"


def read_published(
    path: Path,
    *,
    begin: datetime | None = None,
    end: datetime | None = None,
    ties: Ties = Ties.PUBLISHED,
) -> Trace:
    """What ``read_recorded`` reads, jobs of one second as ``ties`` says."""
    return read_recorded(path, begin=begin, end=end, sort=partial(sort_order, ties=ties))


def sort_order(at_s: Ints, ties: Ties) -> Ints:
    """Positions of ``at_s`` in ascending order of their values, equal ones as ``ties`` says."""
    return in_file_order(at_s) if ties is Ties.FILE else quicksort_order(at_s)


@njit(cache=True)
def quicksort_order(values: Ints) -> Ints:
    """Positions in the order the published figures rest on; the larger part is kept for later."""
    order = np.arange(len(values))
    later = np.empty((128, 2), dtype=np.int64)
    depth, low, high = 0, 0, len(values) - 1
    while True:
        while high - low > SMALL - 1:
            split = partition(values, order, low, high)
            if split - low < high - split:
                later[depth, 0], later[depth, 1] = split + 1, high
                high = split - 1
            else:
                later[depth, 0], later[depth, 1] = low, split - 1
                low = split + 1
            depth += 1
        insertion_sort(values, order, low, high)
        if depth == 0:
            return order
        depth -= 1
        low, high = later[depth, 0], later[depth, 1]


@njit(cache=True)
def partition(values: Ints, order: Ints, low: int, high: int) -> int:
    """Puts the median of first, middle and last where it belongs in ``low..high``; returns that place."""
    middle = low + (high - low) // 2
    sort_pair(values, order, low, middle)
    sort_pair(values, order, middle, high)
    sort_pair(values, order, low, middle)
    pivot = values[order[middle]]
    i, j = low, high - 1
    swap(order, middle, j)
    while True:
        i += 1
        while values[order[i]] < pivot:
            i += 1
        j -= 1
        while pivot < values[order[j]]:
            j -= 1
        if i >= j:
            break
        swap(order, i, j)
    swap(order, i, high - 1)
    return i


@njit(cache=True)
def insertion_sort(values: Ints, order: Ints, low: int, high: int) -> None:
    for i in range(low + 1, high + 1):
        moved = order[i]
        j = i
        while j > low and values[moved] < values[order[j - 1]]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = moved


@njit(cache=True)
def sort_pair(values: Ints, order: Ints, low: int, high: int) -> None:
    if values[order[high]] < values[order[low]]:
        swap(order, low, high)


@njit(cache=True)
def swap(order: Ints, i: int, j: int) -> None:
    order[i], order[j] = order[j], order[i]
