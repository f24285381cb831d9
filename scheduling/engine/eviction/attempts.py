"""Every attempt at room that is not free, in order: the one table that ``find_room`` runs through.

All attempts up to fair shares come before those that go further. Where none succeeds, the same table with a
rule waived says what a workload waits for (``what_bars``).
"""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.eviction.rules import MIXED, MOVES, OWN_TOO, RECLAIM
from scheduling.engine.quota.fair_share import LENT, PLAIN, ROUNDED


class Attempt(NamedTuple):
    """One attempt: ``by`` whom room is made; whether gangs may go that lie partly inside the share of their
    queue, or were evicted often, as far as nominal is ``owed``; how far it stretches.
    """

    by: int
    owed: bool
    stretch: int


WAYS = (
    # Nobody leaves and nobody's share changes, so each class of the wish is asked this before any other row.
    Attempt(MOVES, False, PLAIN),
    # Apart from OWN_TOO: lower priority of the own queue stays while others hold more than their shares.
    Attempt(RECLAIM, False, PLAIN),
    # Apart from RECLAIM: a mover is seated elsewhere at once, on GPUs that are free now, so nodes are cleared
    # one by one; at most MOST_MIXED times in a cycle.
    Attempt(MIXED, False, PLAIN),
    Attempt(RECLAIM, True, PLAIN),
    # First inside the leaf alone, where nobody has to be entitled; then from where reclaim ended to the root.
    Attempt(OWN_TOO, False, PLAIN),
    # Apart from that: the queues of the workload have to end inside their nominal, not inside their shares.
    Attempt(OWN_TOO, True, PLAIN),
    # Inside the shares of others, so only once nothing else does; this and the next at most MOST_STRETCHED
    # times in a cycle.
    Attempt(RECLAIM, True, LENT),
    Attempt(RECLAIM, True, ROUNDED),
)

MOST_STRETCHED = 32
"""Searches in a cycle that go further than to fair shares; this bounds its time."""
MOST_MIXED = 32
"""Searches in a cycle for moves beside evictions, likewise."""
