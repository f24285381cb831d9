"""Carries a plan out on its frame, as enforcement does on a cluster."""

from __future__ import annotations

from collections import Counter

from scheduling.engine import ArrayPlan, Frame, codes


def carry_out(frame: Frame, plan: ArrayPlan, *, instantly: bool = True) -> None:
    """Evictions (gone at once, or leaving), then starts."""
    for slot in plan.evicted():
        frame.leave(slot, int(plan.rival[slot]))
        if instantly:
            frame.requeue(slot)
    for slot in (*plan.with_action(codes.SHRINK), *plan.with_action(codes.MOVE)):
        parted = _change_seats(frame, slot, plan)
        if instantly:
            frame.finish(parted)
    for slot in plan.promised():
        frame.promise(slot, int(plan.gpu_class[slot]), plan.seats(slot))
    for slot in plan.admitted():
        frame.start_on(slot, int(plan.gpu_class[slot]), plan.seats(slot))
    for slot in plan.with_action(codes.GROW):
        frame.reseat(slot, plan.seats(slot))


def _change_seats(frame: Frame, slot: int, plan: ArrayPlan) -> int:
    """A running workload starts again on the seats of ``plan``, or keeps these alone.

    Returns the slot of what holds its other GPUs on until their pods are gone: to be finished then.
    """
    former, seats = frame.seats_of(slot), plan.seats(slot)
    if plan.action[slot] == codes.MOVE:
        frame.start_on(slot, int(plan.gpu_class[slot]), seats)
        return frame.part(slot, former)
    frame.reseat(slot, seats)
    return frame.part(slot, sorted((Counter(former) - Counter(seats)).elements()))
