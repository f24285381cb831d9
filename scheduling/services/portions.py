"""Which starts of a plan are written in one cycle, where they are more than a cycle should write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scheduling.engine import Action, Outline


def portion(plan: Outline, most: int, priority_of: Callable[[str], int]) -> tuple[Outline, bool]:
    """``plan`` with ``most`` of its admissions, and whether those are all. The others are planned anew.

    All of them have room, and wait for nothing but their write. Half are the first of the plan, so that no
    queue's starts are put off for ever; of the rest those of the highest ``priority_of`` a workload's name.
    What makes room stays whole: who it is made for is promised it in the next plan.
    """
    admitted = [d.workload for d in plan.acts if d.action is Action.ADMIT]
    if len(admitted) <= most:
        return plan, True
    first = admitted[: most - most // 2]
    urgent = sorted(admitted[len(first) :], key=priority_of, reverse=True)[: most // 2]
    late = set(admitted).difference(first, urgent)
    return replace(plan, acts=tuple(d for d in plan.acts if d.workload not in late)), False
