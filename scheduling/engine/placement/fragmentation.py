"""Which free GPUs are fragmented: what whole members of the demand leave over on their node.

The member that counts is the smallest of the first of these that there are:

1. those who wait because enough GPUs are free, but scattered;
2. those who wait for room: what a quota or a limit stops uses no GPU, however many are free;
3. all who wait;
4. the median of what runs, as the typical demand.

Where anybody waits as fragmented, some GPU is: with f free on each node, a member of s and m of them wanted,
sum f >= m s and sum floor(f / s) < m give sum (f mod s) > 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median_low

from scheduling.engine.model import Reason

SCATTERED = frozenset({Reason.FRAGMENTED})
ROOM = SCATTERED | {
    Reason.NO_FREE_GPUS,
    Reason.NODES_OUT,
    Reason.NO_ROOM_ON_ITS_NODES,
    Reason.NO_ROOM_IN_TOPOLOGY,
    Reason.NO_ROOM_FOR_SEGMENTS,
    Reason.KEPT_FOR_SHORT,
    Reason.RESERVED_FOR_OTHER,
    Reason.RESERVED,
}
"""Reasons of work that would start if GPUs were free where it fits."""


def wanted_member(waiting: Iterable[tuple[int, str]], running: Iterable[int]) -> int:
    """Milli-GPU of the member that counts, of (member, reason) that wait and members that run on one class;
    0 where nobody asks for a GPU."""
    requests = [(gpus, reason) for gpus, reason in waiting if gpus]
    for reasons in (SCATTERED, ROOM):
        if sizes := [gpus for gpus, reason in requests if reason in reasons]:
            return min(sizes)
    if requests:
        return min(gpus for gpus, _ in requests)
    return median_low([gpus for gpus in running if gpus] or [0])


def left_over(free: int, member: int) -> int:
    """Of ``free`` milli-GPU on one node what members of ``member`` cannot use; 0 where none is wanted."""
    return free % member if member else 0
