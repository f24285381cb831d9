"""Everything one cycle reads and writes, as one struct."""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.arrays import (
    Book,
    Division,
    Flags,
    Floats,
    Holds,
    Ints,
    Nodes,
    Out,
    Quotas,
    Ranks,
    Room,
    Rules,
    Seats,
    Tree,
    Users,
    Work,
)
from scheduling.engine.line import Line
from scheduling.engine.structs import declare


@declare
class Prey(NamedTuple):
    """Running preemptible work, least work lost first, and by node in the same order."""

    ranked: Ints
    start: Ints
    on_node: Ints
    lost: Floats  # [slot] GPU-seconds thrown away by an eviction
    chosen: Flags  # [slot]
    picked: Ints  # the chosen in order of choice
    count: Ints  # type: ignore[assignment] # [1]; nobody asks a struct for tuple.count
    fresh: Ints  # [node] epoch at which its cost was computed, 0 never
    cost: Floats  # [node]
    lowest: Ints  # [queue] lowest priority value among them


@declare
class World(NamedTuple):
    tree: Tree
    quotas: Quotas
    nodes: Nodes
    work: Work
    ranks: Ranks
    holds: Holds
    rules: Rules
    line: Line
    division: Division
    room: Room
    book: Book
    seats: Seats
    out: Out
    prey: Prey
    users: Users
    former: Quotas
    guard: Division
