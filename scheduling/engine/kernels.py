"""The kernels that Python calls: build the world, plan it, divide alone."""

from __future__ import annotations

from typing import Any

from scheduling.engine.arrays import Floats
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
    guard: Any, line: Any, memo: Any, index: Any, pool: Any,
) -> Struct:  # fmt: skip
    """One struct over the arrays of all these plain tuples, in the fields' order."""
    parts = (
        as_struct("Tree", tree),
        as_struct("Quotas", quotas),
        as_struct("Nodes", nodes),
        as_struct("Work", work),
        as_struct("Ranks", ranks),
        as_struct("Holds", holds),
        as_struct("Rules", rules),
        as_struct("Division", division),
        as_struct("Room", room),
        as_struct("Book", book),
        as_struct("Seats", seats),
        as_struct("Out", out),
        as_struct("Prey", prey),
        as_struct("Users", users),
        as_struct("Quotas", former),
        as_struct("Division", guard),
        as_struct("Line", line),
        as_struct("Memo", memo),
        as_struct("Index", index),
        as_struct("Pool", pool),
    )
    return as_struct("World", parts)


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
def potentials(world: Any, scratch: Any, out: Floats) -> None:
    """Potential share of every queue in every class into ``out`` [class, queue]."""
    base = world.division
    work = as_struct("Division", scratch)
    for c in range(out.shape[0]):
        for q in range(1, out.shape[1]):
            out[c, q] = potential(world.tree, world.quotas, c, q, world.rules.history, base, work)
        out[c, 0] = base.capacity[c, 0]
