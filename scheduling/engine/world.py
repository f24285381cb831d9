"""Everything one cycle reads and writes, as one struct."""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.arrays import (
    Book,
    Division,
    Holds,
    Index,
    Nodes,
    Out,
    Pool,
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
from scheduling.engine.memo import Memo
from scheduling.engine.merit import Merit
from scheduling.engine.mix import Mix
from scheduling.engine.prey import Prey
from scheduling.engine.structs import declare


@declare
class World(NamedTuple):
    tree: Tree
    quotas: Quotas
    nodes: Nodes
    work: Work
    ranks: Ranks
    holds: Holds
    rules: Rules
    division: Division
    room: Room
    book: Book
    seats: Seats
    out: Out
    prey: Prey
    users: Users
    former: Quotas
    guard: Division
    line: Line
    memo: Memo
    index: Index  # type: ignore[assignment] # nobody asks a struct for tuple.index
    pool: Pool
    mix: Mix
    merit: Merit
