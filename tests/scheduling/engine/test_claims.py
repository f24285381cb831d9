"""Claims over random organisations: those who leave for others are gone one by one, in any order, while more
work of the highest priority arrives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine import Action, Phase, Plan, Reason, Snapshot, Workload, plan
from scheduling.engine.document import Writer, dump, parse
from tests.scheduling.engine.evolve import apply, check_nodes, check_plan
from tests.scheduling.engine.lives import MEMBERS, going, without
from tests.scheduling.engine.worlds import choosy, contended, lent, scattered

pytestmark = pytest.mark.long

WORLDS = st.one_of(lent(), contended(), scattered(), choosy())
FOR_OTHERS = (Action.EVICT, Action.SHRINK, Action.MOVE)


def _life(world: Snapshot, seed: int, arrivals: int) -> Iterator[tuple[Snapshot, Plan]]:
    """Each snapshot with its plan, until the last of those who leave by the first plan is gone."""
    dice = Random(seed)
    made = plan(world)
    yield world, made
    world = apply(world, made)
    for number, name in enumerate(going(world, dice) or [MEMBERS]):
        world = without(world, name)
        if number < arrivals and world.workloads:
            world = replace(world, workloads=(*world.workloads, _arrival(world, number, dice)))
        made = plan(world)
        yield world, made
        world = apply(world, made)


def _arrival(world: Snapshot, number: int, dice: Random) -> Workload:
    """Of one GPU, in any queue that has work, at the highest priority."""
    like = dice.choice(world.workloads)
    highest = max(world.priority_classes, key=lambda p: p.value).name
    return Workload(f"z{number}", like.queue, highest, world.now, gpu_classes=like.gpu_classes)


def _claims(world: Snapshot) -> set[str]:
    return {w.name for w in world.workloads if w.awaits_victims}


@given(WORLDS, st.integers(0, 1 << 30), st.integers(0, 2))
def test_claim_is_kept_until_its_workload_starts(world: Snapshot, seed: int, arrivals: int) -> None:
    """Whatever arrives, and in whichever order victims are gone."""
    for at, made in _life(world, seed, arrivals):
        check_plan(at, made)
        keeps = {
            d.workload
            for d in made.decisions
            if d.action is Action.ADMIT or d.reason is Reason.AWAITS_VICTIMS
        }
        assert _claims(at) <= keeps


@given(WORLDS, st.integers(0, 1 << 30), st.integers(0, 2))
def test_nobody_more_leaves_for_who_has_a_claim(world: Snapshot, seed: int, arrivals: int) -> None:
    for at, made in _life(world, seed, arrivals):
        served = {d.for_workload for d in made.decisions if d.action in FOR_OTHERS}
        assert not served & _claims(at)


@given(WORLDS, st.integers(0, 1 << 30), st.integers(0, 2))
def test_room_of_a_claim_goes_to_nobody_else(world: Snapshot, seed: int, arrivals: int) -> None:
    """Once what leaves is gone, every node holds what runs and what claims keep."""
    for at, made in _life(world, seed, arrivals):
        then = apply(at, made)
        gone = {"leaving_members": {}, "leaving_devices": {}}
        met = (
            replace(w, **gone, phase=Phase.RUNNING if w.awaits_victims else w.phase)
            for w in then.workloads
            if not w.leaving
        )
        check_nodes(replace(then, workloads=tuple(met)))


@given(WORLDS, st.integers(0, 1 << 30))
def test_who_had_a_claim_has_started_once_the_last_victim_is_gone(
    world: Snapshot, seed: int
) -> None:
    life = list(_life(world, seed, 0))
    first = _claims(apply(*life[0]))
    last, made = life[-1]
    waits = first & _claims(apply(last, made))
    assert not waits or any(w.leaving for w in apply(last, made).workloads)


@given(WORLDS, st.integers(0, 1 << 30))
def test_snapshot_with_claims_is_read_as_it_was_written(world: Snapshot, seed: int) -> None:
    for at, _ in _life(world, seed, 0):
        assert parse(dump(at)) == at


@given(WORLDS, st.integers(0, 1 << 30))
def test_snapshots_written_one_after_the_other_say_what_each_says_alone(
    world: Snapshot, seed: int
) -> None:
    writer = Writer()
    for at, _ in _life(world, seed, 2):
        assert json.loads(writer.write(at)) == dump(at)


@given(WORLDS, st.integers(0, 1 << 30))
def test_every_act_for_another_says_its_rule(world: Snapshot, seed: int) -> None:
    for _, made in _life(world, seed, 0):
        for decision in made.decisions:
            assert bool(decision.rule) == (decision.action in (*FOR_OTHERS, Action.LAPSE))
