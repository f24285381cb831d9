"""Planning a frame again with one slot, or one limit, changed.

First only those are asked again on whom the answer can turn: those that started, have a claim, keep a turn
or hold nodes. What was refused mostly stays refused when another asks for room too; what they ask for
counts in the division all the same. Whom that lets start is confirmed beside everybody who waits or, where
they are many, beside those first in line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduling.engine import codes
from scheduling.engine.compile.structs import Ints
from scheduling.engine.cycle.one_pass import plan_world
from scheduling.engine.division.demand import ask_outside
from scheduling.engine.model import MILLI
from scheduling.engine.planner import plan_frame
from scheduling.engine.reasons.catalogue import figures_of
from scheduling.engine.reasons.wording import gpus_in_words
from scheduling.engine.snapshot.frame import Frame
from scheduling.engine.state.array_plan import ArrayPlan
from scheduling.engine.state.order import ALL, FEW, FRESH, LISTED
from scheduling.engine.state.units import GPUS
from scheduling.engine.whatif.change import Change, Relaxation

LIMITS = (
    codes.AT_LIMIT,
    codes.NEVER_FITS,
    codes.HOURS_SPENT,
    codes.QUEUE_AT_JOB_LIMIT,
    codes.USER_AT_LIMIT,
)
"""Reasons for which a limit stands in the way."""
MOST_ASKED = 300
"""Up to so many that wait are all tried to confirm an answer: a few milliseconds."""


class Again:
    """Plans the frame again and again with one slot changed, among the few who matter."""

    def __init__(self, frame: Frame, slot: int, plan: ArrayPlan) -> None:
        self.frame, self.slot = frame, slot
        self.blame, self.gpu_class = int(plan.blame[slot]), max(0, int(plan.gpu_class[slot]))
        self.reason, row = int(plan.reason[slot]), plan.figures[slot].tolist()
        self.figures = figures_of(codes.REASONS[self.reason], row)
        self.usage = int(plan.queues.usage.gpus[self.gpu_class, self.blame])
        circles = self._who_matters(plan)[: 3 if self.reason in LIMITS else 2]
        self._circles = [(among, plan.queues.demand.requests) for among in circles]

    def __enter__(self) -> Again:
        ordering, queues = self.frame.buffers.ordering, self.frame.buffers.queues
        self._line = ordering.pending.slot[: ordering.pending.size[0]].copy()
        requests = queues.demand.requests.copy()
        self._kind = int(self.frame.buffers.shapes.of[self.slot])
        ordering.pending.narrowed[0] = FEW
        for k, (among, _) in enumerate(self._circles):
            self._list(among)
            ask_outside(queues.demand, 0)
            plan_world(self.frame.world, self.frame.now, False)
            self._circles[k] = among, requests - queues.demand.requests
        return self

    def __exit__(self, *_: object) -> None:
        ordering = self.frame.buffers.ordering
        ordering.pending.slot[: self._line.size] = self._line
        ordering.pending.size[0], ordering.changes.pending_size[0], ordering.pending.narrowed[0] = (
            self._line.size,
            0,
            ALL,
        )
        ordering.changes.pending_state[self.slot] = LISTED
        self.frame.buffers.shapes.of[self.slot] = self._kind
        ask_outside(self.frame.buffers.queues.demand, 0)

    def _who_matters(self, plan: ArrayPlan) -> tuple[Ints, Ints, Ints]:
        """What got or keeps something, or stepped back; those with the first of each leaf, or everybody
        if few wait; and all of these with what a limit stops.
        """
        ordering, queues = self.frame.buffers.ordering, plan.queues
        item = ordering.pending.slot[: ordering.pending.size[0]]
        matters = np.zeros(self.frame.work.phase.size, np.bool_)
        action = plan.action[item]
        waiting = (action == codes.WAIT) | (action == codes.UNDECIDED)
        matters[item[~waiting | plan.out.starts.withdrawn[item]]] = True
        for slots in (queues.turns.slot, queues.reservations.slot, queues.starts.first_promised):
            matters[slots[slots >= 0]] = True
        matters[self.slot] = False
        few = item[matters[item]]
        waits = ordering.pending.queue_begin[:-1] < ordering.pending.queue_begin[1:]
        matters[
            item
            if item.size <= MOST_ASKED
            else item[ordering.pending.group_begin[ordering.pending.queue_begin[:-1][waits]]]
        ] = True
        matters[self.slot] = False
        more = item[matters[item]]
        matters[item[waiting & np.isin(plan.reason[item], LIMITS)]] = True
        matters[self.slot] = False
        return few, more, item[matters[item]]

    def plan(self, *, higher_limit: bool) -> ArrayPlan | None:
        """The plan with the slot as it is now, None if it does not start, nor is promised room. What those
        outside a circle ask for counts in it. A higher limit lets in what it stopped, and that may take
        what others at other limits wait for: all of them are asked.
        """
        for among, extra in self._circles[2:] if higher_limit else self._circles[:2]:
            self._list(among)
            ask_outside(self.frame.buffers.queues.demand, extra)
            plan = plan_frame(self.frame)
            promised = plan.reason[self.slot] == codes.AWAITS_VICTIMS
            if plan.action[self.slot] != codes.ADMIT and not promised:
                return None
        return plan

    def _list(self, among: Ints) -> None:
        """``among`` and the slot are in line."""
        ordering = self.frame.buffers.ordering
        ordering.pending.slot[: among.size] = among
        ordering.pending.size[0], ordering.changes.pending_size[0] = among.size, 1
        ordering.changes.pending[0] = self.slot
        ordering.changes.pending_state[self.slot] = FRESH

    def starts(
        self, change: Change, value: str | int, sentence: str, queue: str = ""
    ) -> Relaxation | None:
        """The relaxation if the slot starts, or is promised room, as it is now; ``queue`` is the one whose
        limit was raised.
        """
        plan, frame, slot = self.plan(higher_limit=bool(queue)), self.frame, self.slot
        if plan is None:
            return None
        kind = frame.class_names[int(plan.gpu_class[slot])]
        gone = (
            sum(int(plan.members[v] * frame.work.need[GPUS, v]) for v in plan.evicted())
            if plan.reason[slot] == codes.AWAITS_VICTIMS
            else 0
        )
        left = "has" if gone == MILLI else "have"
        after = f", once {gpus_in_words(gone)} of others {left} left" if gone else ""
        return Relaxation(change, value, f"{sentence} {kind}{after}.", kind, gone, queue)

    def with_fields(
        self, fields: dict[str, Any], change: Change, value: str | int, sentence: str
    ) -> Relaxation | None:
        """The same while ``fields`` of the slot have other values."""
        work, slot = self.frame.work, self.slot
        former = {name: getattr(work, name)[..., slot].copy() for name in fields}
        for name, other in fields.items():
            getattr(work, name)[..., slot] = other
        try:
            return self.starts(change, value, sentence)
        finally:
            for name, own in former.items():
                getattr(work, name)[..., slot] = own
