"""Asking those who wait once more after somebody left: the next cycle's questions, put in this one.

What is refused may start once others have left or a turn was given up, and room held in vain can go
to others. Were that left to the next cycle, a plan would be followed by another one without anything
having changed outside (law 4).
"""

from __future__ import annotations

from scheduling.engine import codes
from scheduling.engine.admission.reserve import let_nodes_go
from scheduling.engine.admission.turns import clear_turns
from scheduling.engine.compile.kernel import inner
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Work
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.queues import Queues
from scheduling.engine.statement.lines import undecide


@inner
def must_ask_again(queues: Queues, out: Decisions, since: int) -> bool:
    """Whether a decision from number ``since`` on may let somebody start who was refused: an eviction,
    or a start while turns or nodes are kept, or somebody would have what others claim: they may be past
    their share by now; or whether somebody stepped back.
    """
    started = False
    if queues.round.asks_again:
        return True
    for k in range(since, out.size[0]):
        action = out.action[out.order[k]]
        if action not in (codes.ADMIT, codes.RESERVE, codes.WAIT):
            return True
        if action == codes.ADMIT or out.reason[out.order[k]] == codes.AWAITS_VICTIMS:
            started = True
    return started and (queues.round.behind_claims == 1 or _keeps(queues))


@inner
def _keeps(queues: Queues) -> bool:
    for c in range(queues.reservations.slot.size):
        if queues.reservations.slot[c] >= 0:
            return True
        for q in range(queues.usage.dominant_share.size):
            if queues.turns.slot[c, q] >= 0:
                return True
    return False


@inner
def reopen_waits(work: Work, room: NodeRoom, queues: Queues, out: Decisions) -> None:
    """Take back what was decided on those who wait, and what is kept for them."""
    let_nodes_go(work, room, queues, out)
    count = 0
    for k in range(out.size[0]):
        w = out.order[k]
        waits = out.action[w] == codes.RESERVE and out.reason[w] != codes.AWAITS_VICTIMS
        if not waits and out.action[w] != codes.WAIT:
            out.order[count] = w
            count += 1
            continue
        undecide(out, w)
    out.size[0] = count
    clear_turns(queues)
