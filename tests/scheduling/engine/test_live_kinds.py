"""Decision tables of what goes on between a plan that evicts and the start of whom it evicts for.

Each world is lived through: the plan is carried out, ``arrives`` comes, those who leave are gone one by one,
in either order, and a plan is made after each. ``evicted`` are all who ever leave, ``running`` who runs in
the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduling.engine import Action, Phase, Plan, Snapshot, plan
from scheduling.engine.document.reader import parse
from tests.scheduling.engine.evolve import apply, check_plan, let_leave
from tests.scheduling.engine.lives import without

pytestmark = pytest.mark.long

TABLE = Path(__file__).parent / "cases" / "live.yaml"
MOST_PLANS = 12


def _cases() -> list[Any]:
    return [
        pytest.param(
            case, backwards, id=f"{case['name']}: {'last' if backwards else 'first'} first"
        )
        for case in yaml.load(TABLE.read_text(encoding="utf-8"), yaml.CSafeLoader)["cases"]
        for backwards in (False, True)
    ]


def _life(case: dict[str, Any], *, backwards: bool) -> Iterator[tuple[Snapshot, Plan]]:
    """Each snapshot with its plan, until one does nothing and nobody leaves."""
    world = parse(case["world"])
    late = parse({**case["world"], "workloads": case.get("arrives", [])}).workloads
    for number in range(MOST_PLANS):
        made = plan(world)
        yield world, made
        after = apply(world, made)
        going = sorted((w.name for w in after.workloads if w.leaving), reverse=backwards)
        after = without(after, going[0]) if going else let_leave(after)
        if number == 0:
            works = sorted((*after.workloads, *late), key=lambda w: w.name)
            after = replace(after, workloads=tuple(works))
        elif after == world:
            return
        world = after
    pytest.fail(f"plans still act after {MOST_PLANS}")


@pytest.mark.parametrize(("case", "backwards"), _cases())
def test_who_others_left_for_starts_and_nobody_leaves_twice(
    case: dict[str, Any], backwards: bool
) -> None:
    life = list(_life(case, backwards=backwards))
    for world, made in life:
        check_plan(world, made)
        claims = {w.name for w in world.workloads if w.awaits_victims and not w.leaving}
        kept = {d.workload for d in made.decisions if d.action in (Action.ADMIT, Action.RESERVE)}
        assert claims <= kept
    lines = [d for _, made in life for d in made.decisions]
    assert sorted(d.workload for d in lines if d.action is Action.EVICT) == case["evicted"]
    assert not [d.workload for d in lines if d.action is Action.LAPSE]
    last, _ = life[-1]
    assert set(case["running"]) <= {w.name for w in last.workloads if w.phase is Phase.RUNNING}
