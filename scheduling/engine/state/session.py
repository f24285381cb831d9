"""Everything one cycle reads and writes, as one struct."""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.compile.structs import declare
from scheduling.engine.state.decisions import Out
from scheduling.engine.state.input import (
    Holds,
    Nodes,
    Pool,
    Quotas,
    Ranks,
    Rules,
    Tree,
    Users,
    Work,
)
from scheduling.engine.state.nodes import Index, Mix, Room, Seats
from scheduling.engine.state.order import Line, Memo
from scheduling.engine.state.shares import Division
from scheduling.engine.state.usage import Book
from scheduling.engine.state.victims import Prey


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
