"""Claims over random organisations that people edit while those who leave for others are gone one by one, in
any order, and slowly: some plans find nobody gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine import Action, Phase, Plan, Reason, Snapshot, Stop, plan
from scheduling.engine.enums import Lapse
from tests.scheduling.engine.evolve import apply, check_nodes, led_to, wait
from tests.scheduling.engine.test_claims import FOR_OTHERS, WORLDS, without

pytestmark = pytest.mark.long

Edit = Callable[[Snapshot, Random], Snapshot]
WAIT_S = 20.0
"""Between two plans; a claim is held for far longer."""


def quota(world: Snapshot, dice: Random, *factors: float) -> Snapshot:
    """The nominal quotas of a queue are so many times what they were."""
    chosen, factor = dice.choice(world.queues), dice.choice(factors)
    quotas = {
        name: replace(each, nominal=round(each.nominal * factor))
        for name, each in chosen.quotas.items()
    }
    return _with_queue(world, chosen.name, quotas=quotas)


def raised(world: Snapshot, dice: Random) -> Snapshot:
    return quota(world, dice, 1.5, 4.0)


def lowered(world: Snapshot, dice: Random) -> Snapshot:
    return quota(world, dice, 0.0, 0.5)


def limited(world: Snapshot, dice: Random) -> Snapshot:
    chosen = dice.choice(world.queues)
    quotas = {name: replace(each, borrowing_limit=0) for name, each in chosen.quotas.items()}
    return _with_queue(world, chosen.name, quotas=quotas)


def stopped(world: Snapshot, dice: Random) -> Snapshot:
    return _with_queue(world, dice.choice(world.queues).name, stop=Stop.HOLD)


def held(world: Snapshot, dice: Random) -> Snapshot:
    """Somebody who waits is put on hold by its author."""
    waits = [w.name for w in world.workloads if w.phase is Phase.PENDING]
    name = dice.choice(waits) if waits else ""
    works = (replace(w, held=w.held or w.name == name) for w in world.workloads)
    return replace(world, workloads=tuple(works))


def hurried(world: Snapshot, dice: Random) -> Snapshot:
    """Somebody who waits gets the highest priority."""
    waits = [w.name for w in world.workloads if w.phase is Phase.PENDING and not w.awaits_victims]
    name = dice.choice(waits) if waits else ""
    highest = max(world.priority_classes, key=lambda p: p.value).name
    works = (replace(w, priority_class=highest) if w.name == name else w for w in world.workloads)
    return replace(world, workloads=tuple(works))


def cordoned(world: Snapshot, dice: Random) -> Snapshot:
    name = dice.choice(world.nodes).name
    nodes = (replace(n, ready=n.ready and n.name != name) for n in world.nodes)
    return replace(world, nodes=tuple(nodes))


def thrifty(world: Snapshot, dice: Random) -> Snapshot:
    """Policy: evictions are bounded, and come late."""
    policy = replace(world.policy, eviction_cap=1.0, preemption_delay_s=7200)
    return replace(world, policy=policy)


def _with_queue(world: Snapshot, name: str, **changes: object) -> Snapshot:
    queues = (replace(q, **changes) if q.name == name else q for q in world.queues)
    return replace(world, queues=tuple(queues))


CAUSES: dict[Edit, set[Lapse]] = {
    raised: set(),
    hurried: set(),
    thrifty: set(),
    lowered: {Lapse.TAKEN_AWAY},
    limited: {Lapse.TAKEN_AWAY},
    stopped: {Lapse.TAKEN_AWAY},
    held: {Lapse.TAKEN_AWAY},
    cordoned: {Lapse.SEATS_GONE},
}
"""For which causes claims may lapse by each edit."""


def lived(world: Snapshot, edit: Edit, seed: int) -> Iterator[tuple[Snapshot, Plan]]:
    """Each snapshot with its plan, until the last of those who leave by the first plan is gone; ``edit``
    comes after any of these."""
    dice = Random(seed)
    made = plan(world)
    world = wait(apply(world, made), WAIT_S)
    going = [w.name for w in world.workloads if w.leaving]
    moments = [*going, *[None] * len(going)]
    dice.shuffle(moments)
    edited = dice.randrange(len(moments)) if moments else 0
    for number, name in enumerate(moments):
        world = without(world, name) if name else world
        world = edit(world, dice) if number == edited else world
        made = plan(world)
        yield world, made
        world = wait(apply(world, made), WAIT_S)


@pytest.mark.parametrize("edit", [pytest.param(edit, id=edit.__name__) for edit in CAUSES])
@given(WORLDS, st.integers(0, 1 << 30))
def test_claim_is_kept_whatever_people_edit_or_lapses_by_what_they_did(
    edit: Edit, world: Snapshot, seed: int
) -> None:
    """Nobody more leaves for who has one, and its room goes to nobody else."""
    for at, made in lived(world, edit, seed):
        claims = {w.name for w in at.workloads if w.awaits_victims and not w.leaving}
        lapsed = {d.workload: d.rule for d in made.decisions if d.action is Action.LAPSE}
        lines = [d for d in made.decisions if d.action is not Action.LAPSE]
        keeps = {
            d.workload
            for d in lines
            if d.action is Action.ADMIT or d.reason is Reason.AWAITS_VICTIMS
        }
        assert claims <= keeps | set(lapsed)
        assert {Lapse(rule) for rule in lapsed.values()} <= CAUSES[edit]
        served = {d.for_workload for d in lines if d.action in FOR_OTHERS}
        assert not served & (claims - set(lapsed))
        check_nodes(led_to(at, made), at)
