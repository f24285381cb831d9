"""The kernels that Python calls: plan a world, divide alone."""

from __future__ import annotations

from typing import Any

from scheduling.engine.admission.reserve import clear_reservations
from scheduling.engine.admission.turns import clear_turns
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.cycle.steps import decide_all
from scheduling.engine.division.share_out import share_out
from scheduling.engine.eviction.candidates import forget_candidates, forget_given, reset_candidates
from scheduling.engine.eviction.lifted import forget_stops
from scheduling.engine.order.pending import update_pending
from scheduling.engine.order.running import update_running
from scheduling.engine.placement.node_room import lay_out, sum_open
from scheduling.engine.quota.usage import weigh_queues
from scheduling.engine.state.order import FEW
from scheduling.engine.state.session import Session
from scheduling.engine.statement.lines import clear_out, note_the_settled
from scheduling.engine.statement.operations import clear_starts


@kernel
def plan_world(world: Any, now: float, acts: bool) -> None:
    """One cycle at ``now``; division and decisions are in ``world``. Without ``acts`` the division alone."""
    run_cycle(world, now, acts)


@inner
def run_cycle(world: Any, now: float, acts: bool) -> None:
    """``plan_world`` for kernels."""
    rules = world.rules
    rules.now = now
    update_pending(world.ordering, world.shapes, world.work, world.ranks, now, rules.shortest)
    again = world.ordering.pending.narrowed[0] == FEW
    if not again:
        update_running(world.ordering, world.shapes, world.work)
    clear_out(world)
    if acts:
        lay_out(world)
    _begin(world)
    share_out(world)
    if not acts:
        note_the_settled(world)
        return
    weigh_queues(world)
    sum_open(world)
    if again:
        reset_candidates(world.candidates)
    else:
        forget_candidates(world.candidates)
    decide_all(world)
    forget_given(world.work, world.holds, world.out, world.candidates)
    note_the_settled(world)


@kernel
def divide_world(world: Any) -> None:
    """The division alone, over the line as it stands: demand summed again, shares in ``world``."""
    clear_out(world)
    _begin(world)
    share_out(world)
    note_the_settled(world)


@inner
def _begin(world: Session) -> None:
    """Nothing has started, nobody keeps a turn or nodes."""
    clear_starts(world)
    clear_turns(world)
    clear_reservations(world)
    forget_stops(world.queues.borrowing)
