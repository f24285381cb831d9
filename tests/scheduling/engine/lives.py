"""What plans lead to in a world in which nothing else happens: those who leave are gone one by one."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import NamedTuple

from scheduling.engine import Action, Decision, Plan, Snapshot, plan
from tests.scheduling.engine.evolve import acts, apply, let_leave, without_prompt_starts

MEMBERS = ""
"""Where nobody leaves whole, those who shrank and moved let go of what they held: the one step there is."""
TAKES = (Action.EVICT, Action.SHRINK, Action.MOVE, Action.LAPSE)
Course = list[tuple[Snapshot, Plan]]


class Finding(NamedTuple):
    """A plan that should have been empty, or at least have taken nothing: the last of ``course``."""

    when: str
    done: list[Decision]
    course: Course


def without(world: Snapshot, name: str) -> Snapshot:
    """The pods of ``name`` are gone, and so are those of members and movers."""
    stay = [w for w in world.workloads if w.leaving and w.name != name]
    freed = let_leave(
        replace(world, workloads=tuple(w for w in world.workloads if w not in stay))
    ).workloads
    return replace(world, workloads=tuple(sorted((*freed, *stay), key=lambda w: w.name)))


def going(world: Snapshot, dice: Random) -> list[str]:
    """Who leaves, in the order in which their pods are gone."""
    names = [w.name for w in world.workloads if w.leaving]
    dice.shuffle(names)
    parts = any(w.leaving_members for w in world.workloads)
    return names or [MEMBERS] * parts


def first_finding(world: Snapshot, dice: Random) -> Finding | None:
    """The first of: what a second plan does at once; what plans take while those who leave are gone, one by
    one; and what is done, or claimed for ever, once all are gone.
    """
    made = plan(world)
    course, after = [(world, made)], apply(world, made)
    if after == world:
        return None
    again = plan(after)
    done = without_prompt_starts(after, acts(again)) + _lapses(again)
    if done:
        return Finding("at once", done, [*course, (after, again)])
    names = going(after, dice)
    for name in names:
        world = without(after, name)
        made = plan(world)
        course.append((world, made))
        takes = [d for d in made.decisions if d.action in TAKES]
        if takes:
            return Finding("while they leave", takes, course)
        after = apply(world, made)
    return _at_the_end(after, course) if names else None


def _at_the_end(after: Snapshot, course: Course) -> Finding | None:
    again = plan(after)
    waits = {w.name for w in after.workloads if w.awaits_victims}
    done = acts(again) + _lapses(again)
    done += [d for d in again.decisions if d.workload in waits and d not in done]
    return Finding("at the end", done, [*course, (after, again)]) if done else None


def _lapses(made: Plan) -> list[Decision]:
    return [d for d in made.decisions if d.action is Action.LAPSE]
