"""The kernels that Python calls: build the world, plan it, divide alone."""

from __future__ import annotations

from typing import Any

from scheduling.engine.arrays import Floats, Ints
from scheduling.engine.compiled import inner, kernel
from scheduling.engine.cycle import decide_all
from scheduling.engine.division import potential
from scheduling.engine.line import renew
from scheduling.engine.prepare import (
    clear,
    note_the_settled,
    occupy_nodes,
    weigh,
)
from scheduling.engine.prey import forget_given
from scheduling.engine.sharing import share_out
from scheduling.engine.structs import Struct, as_struct


@kernel
def build_world(
    tree: Any, quotas: Any, nodes: Any, work: Any, ranks: Any, holds: Any, rules: Any,
    division: Any, room: Any, book: Any, seats: Any, out: Any, prey: Any, users: Any, former: Any,
    guard: Any, line: Any, memo: Any, index: Any, pool: Any, memory: Ints,
) -> Struct:  # fmt: skip
    """One struct over the arrays of all these plain tuples, in the fields' order; it lives in ``memory``."""
    parts = (
        as_struct("Tree", tree, memory),
        as_struct("Quotas", quotas, memory),
        as_struct("Nodes", nodes, memory),
        as_struct("Work", work, memory),
        as_struct("Ranks", ranks, memory),
        as_struct("Holds", holds, memory),
        as_struct("Rules", rules, memory),
        as_struct("Division", division, memory),
        as_struct("Room", room, memory),
        as_struct("Book", book, memory),
        as_struct("Seats", seats, memory),
        as_struct("Out", out, memory),
        as_struct("Prey", prey, memory),
        as_struct("Users", users, memory),
        as_struct("Quotas", former, memory),
        as_struct("Division", guard, memory),
        as_struct("Line", line, memory),
        as_struct("Memo", memo, memory),
        as_struct("Index", index, memory),
        as_struct("Pool", pool, memory),
    )
    return as_struct("World", parts, memory)


@kernel
def plan_world(world: Any, now: float, acts: bool) -> None:
    """One cycle at ``now``; division and decisions are in ``world``. Without ``acts`` the division alone."""
    run_cycle(world, now, acts)


@inner
def run_cycle(world: Any, now: float, acts: bool) -> None:
    """``plan_world`` for kernels."""
    rules = world.rules
    rules.now = now
    renew(world.line, world.work, world.ranks, now, rules.shortest)
    if acts:
        clear(world)
        occupy_nodes(world)
    share_out(world)
    if not acts:
        return
    weigh(world)
    world.prey.listed[0] = 0
    decide_all(world)
    forget_given(world.work, world.holds, world.out, world.prey)
    note_the_settled(world)


@kernel
def divide_world(world: Any) -> None:
    """The division alone, over the line as it stands: demand summed again, shares in ``world``."""
    share_out(world)


@kernel
def potentials(world: Any, scratch: Any, memory: Ints, out: Floats) -> None:
    """Potential share of every queue in every class into ``out`` [class, queue]."""
    base = world.division
    work = as_struct("Division", scratch, memory)
    for c in range(out.shape[0]):
        for q in range(1, out.shape[1]):
            out[c, q] = potential(world.tree, world.quotas, c, q, world.rules.history, base, work)
        out[c, 0] = base.capacity[c, 0]
