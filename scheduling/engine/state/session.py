"""Everything one cycle reads and writes, as one struct."""

from __future__ import annotations

from typing import NamedTuple

from scheduling.engine.compile.structs import declare
from scheduling.engine.state.decisions import Decisions
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
from scheduling.engine.state.nodes import Mix, NodeIndex, NodeRoom, Seats
from scheduling.engine.state.order import Ordering, Shapes
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.victims import Candidates


@declare
class Session(NamedTuple):
    tree: Tree
    quotas: Quotas
    nodes: Nodes
    work: Work
    ranks: Ranks
    holds: Holds
    rules: Rules
    division: Division
    room: NodeRoom
    queues: Queues
    seats: Seats
    out: Decisions
    candidates: Candidates
    users: Users
    former: Quotas  # what was in force before a lowering
    guard: Division  # the division of those
    ordering: Ordering
    shapes: Shapes
    index: NodeIndex  # type: ignore[assignment] # nobody asks a struct for tuple.index
    pool: Pool
    mix: Mix
