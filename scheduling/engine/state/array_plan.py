"""What a cycle decided, read from the tables of a frame."""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.structs import Ints
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.queues import Division, Queues
from scheduling.engine.state.session import Session

ACTING = np.isin(
    np.arange(len(codes.ACTIONS)), (codes.ADMIT, codes.EVICT, codes.GROW, codes.SHRINK, codes.MOVE)
)
"""By number of the action: whether it changes the cluster."""


class ArrayPlan:
    """Decisions by slot, as arrays. They are views: valid until the frame is planned again.

    ``order`` lists the slots decided on, in order; ``action`` and ``reason`` are numbers of ``codes``;
    ``rival`` and ``blame`` are a slot and a queue or -1; ``until`` is 0 for never; ``fair`` is the
    division [class, queue] in milli-GPU.
    """

    def __init__(self, buffers: Session) -> None:
        out, division = buffers.out, buffers.division
        self.out: Decisions = out
        self.division: Division = division
        self.queues: Queues = buffers.queues
        self.order = out.order[: int(out.size[0])]
        self.action, self.reason = out.action, out.reason
        self.gpu_class, self.members = out.gpu_class, out.members
        self.rival, self.blame, self.until, self.lost = out.rival, out.blame, out.until, out.lost
        self.rule, self.lapsed = out.rule, out.lapsed
        self.figures, self.searches, self.fair = out.figures, out.searches.made, division.fair

    def admitted(self) -> list[int]:
        """Slots that start, in order."""
        return self.with_action(codes.ADMIT)

    def evicted(self) -> list[int]:
        """Slots that leave, in order."""
        return self.with_action(codes.EVICT)

    def with_action(self, action: int) -> list[int]:
        """Slots of which that one of ``codes`` is decided, in order."""
        return self.order[self.action[self.order] == action].tolist()

    def promised(self) -> list[int]:
        """Slots for which room is coming free."""
        slots = self.order[self.reason[self.order] == codes.AWAITS_VICTIMS]
        return [int(slot) for slot in slots]

    def carried_out(self) -> Ints:
        """Slots that change the cluster, or for which room is coming free, in order."""
        order = self.order
        is_due = ACTING[self.action[order]] | (self.reason[order] == codes.AWAITS_VICTIMS)
        slots: Ints = order[is_due]
        return slots

    def seats(self, slot: int) -> list[tuple[int, int]]:
        """Node and device of each member that ``slot`` is given."""
        first = int(self.out.pool.first[slot])
        last = first + int(self.members[slot])
        nodes, devices = self.out.pool.node[first:last], self.out.pool.device[first:last]
        return list(zip(nodes.tolist(), devices.tolist(), strict=True))
