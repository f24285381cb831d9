"""The kernels that Python calls: plan a world, divide alone."""

from __future__ import annotations

from typing import Any

from scheduling.engine.admission.reserve import clear_reservations
from scheduling.engine.admission.turns import clear_turns
from scheduling.engine.compile.kernel import inner, kernel
from scheduling.engine.cycle.steps import decide_all
from scheduling.engine.division.share_out import share_out
from scheduling.engine.eviction.candidates import forget_candidates, forget_given, reset_candidates
from scheduling.engine.order.pending import update_pending
from scheduling.engine.order.running import update_running
from scheduling.engine.placement.node_room import lay_out, sum_open
from scheduling.engine.quota.usage import weigh_queues
from scheduling.engine.state.order import FEW
from scheduling.engine.state.queues import Queues
from scheduling.engine.statement.lines import clear_out, note_the_settled
from scheduling.engine.statement.operations import clear_starts


@kernel
def plan_world(world: Any, now: float, acts: bool) -> None:
    """One cycle at ``now``; division and decisions are in ``world``. Without ``acts`` the division alone."""
    run_cycle(world, now, acts)


@inner
def run_cycle(world: Any, now: float, acts: bool) -> None:
    """``plan_world`` for kernels."""
    work, out, candidates, ordering = world.work, world.out, world.candidates, world.ordering
    rules = world.rules
    rules.now = now
    update_pending(ordering, world.shapes, work, world.ranks, now, rules.shortest)
    again = ordering.pending.narrowed[0] == FEW
    if not again:
        update_running(ordering, world.shapes, work)
    clear_out(out, candidates)
    if acts:
        lay_out(world.nodes, work, world.holds, world.room)
    begin_cycle(world.queues)
    share_out(world)
    if not acts:
        note_the_settled(out, ordering)
        return
    weigh_queues(world)
    sum_open(world.nodes, world.room)
    if again:
        reset_candidates(candidates)
    else:
        forget_candidates(candidates)
    decide_all(world)
    forget_given(work, world.holds, out, candidates)
    note_the_settled(out, ordering)


@inner
def begin_cycle(queues: Queues) -> None:
    """Nothing has started, nobody keeps a turn or nodes."""
    clear_starts(queues)
    clear_turns(queues)
    clear_reservations(queues)
