"""Which starts of a plan are written in one cycle, where they are more than a cycle should write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from scheduling.engine import Action, Decision, Outline, Reason, Waits

NEXT = "GPUs are free for it. It starts once the starts before it are written."


def portion(plan: Outline, most: int, priority_of: Callable[[str], int]) -> tuple[Outline, bool]:
    """``plan`` with ``most`` of its admissions, and whether those are all. The others wait, at the head of
    the line, to be planned anew.

    All of them have room, and wait for nothing but their write. Half are the first of the plan, so that no
    queue's starts are put off for ever; of the rest those of the highest ``priority_of`` a workload's name.
    What makes room stays whole: whom it is made for claims it in the next plan.
    """
    admitted = [d.workload for d in plan.acts if d.action is Action.ADMIT]
    if len(admitted) <= most:
        return plan, True
    first = admitted[: most - most // 2]
    urgent = sorted(admitted[len(first) :], key=priority_of, reverse=True)[: most // 2]
    late = set(admitted).difference(first, urgent)
    return put_off(plan, [(d, _later(d)) for d in plan.acts if d.workload in late]), False


def served_by(plan: Outline) -> frozenset[str]:
    """Names of those that start by ``plan``, or for whom it makes room."""
    starts = (act.workload for act in plan.acts if act.action is Action.ADMIT)
    return frozenset((*starts, *(act.for_workload for act in plan.acts if act.for_workload)))


def put_off(plan: Outline, late: Sequence[tuple[Decision, Decision | None]]) -> Outline:
    """``plan`` without the acts that are ``late``, and with the waits beside them at the head of the line."""
    if not late:
        return plan
    gone = {id(act) for act, _ in late}
    acts = tuple(act for act in plan.acts if id(act) not in gone)
    waits = [wait for _, wait in late if wait is not None]
    return replace(plan, acts=acts, waits=ahead_of(plan.waits, waits))


def _later(start: Decision) -> Decision:
    """A wait without a place in the line: nobody it waits for has to end."""
    return Decision(
        workload=start.workload,
        action=Action.WAIT,
        reason=Reason.WAITS_FOR_TURN,
        sentence=NEXT,
        queue=start.queue,
    )


def ahead_of(line: Waits, decisions: Sequence[Decision]) -> Waits:
    """``line`` with ``decisions`` before it."""
    ahead = len(decisions)

    def spell(places: Sequence[int]) -> list[Decision]:
        others = iter(line.spell([place - ahead for place in places if place >= ahead]))
        return [decisions[place] if place < ahead else next(others) for place in places]

    return Waits(
        names=[*(d.workload for d in decisions), *line.names],
        reasons=[*(d.reason for d in decisions), *line.reasons],
        positions=[*(0 for _ in decisions), *line.positions],
        spell=spell,
    )
