"""Decision tables of where plans lead: each is carried out and made again until nothing changes.

``running`` and ``waiting`` are names that must be among those in the end, ``members`` how many members they
run with; ``evicted`` and ``moved`` are all names that any plan evicts or moves, ``evicted_of`` how many more
of some names, whichever.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from scheduling.engine import Action, Phase, Snapshot, plan
from scheduling.engine.document.reader import parse
from tests.scheduling.engine.evolve import acts, apply, check_plan, let_leave, without_prompt_starts
from tests.scheduling.engine.twins import TWINS, shares_gpus
from workshop.simulator.laws.room import check

TABLE = Path(__file__).parent / "cases" / "settled.yaml"
MOST_PLANS = 8


class Settled(NamedTuple):
    """Where plans led, and whom they evicted and moved on the way, in order."""

    members: Mapping[str, int]
    waiting: frozenset[str]
    evicted: list[str]
    moved: list[str]


def _cases() -> list[Any]:
    return [
        pytest.param(case, twin, id=f"{case['name']}: {twin}")
        for case in yaml.safe_load(TABLE.read_text(encoding="utf-8"))["cases"]
        for twin in TWINS
        if not (twin == "twice the size" and shares_gpus(case["snapshot"]))
    ]


@pytest.mark.parametrize(("case", "twin"), _cases())
def test_plans_of_the_case_lead_where_it_says(case: dict[str, Any], twin: str) -> None:
    document, names = TWINS[twin](case["snapshot"])
    want = case["settled"]

    found = _settle(parse(document))

    def new(key: str) -> set[str]:
        return {names[name] for name in want.get(key, ())}

    assert new("running") <= set(found.members)
    assert new("waiting") <= found.waiting
    for name, members in want.get("members", {}).items():
        assert found.members[names[name]] == members
    assert sorted(found.moved) == sorted(new("moved"))
    some = want.get("evicted_of", {"names": [], "count": 0})
    others = [name for name in found.evicted if name not in new("evicted")]
    assert len(found.evicted) - len(others) == len(new("evicted"))
    assert len(others) == len(set(others)) == some["count"]
    assert set(others) <= {names[name] for name in some["names"]}


def _settle(snapshot: Snapshot) -> Settled:
    """Carry out what is planned, and put the evicted back in line, until a plan does nothing."""
    evicted, moved = [], []
    for _ in range(MOST_PLANS):
        made = plan(snapshot)
        check_plan(snapshot, made)
        check(snapshot, made)
        evicted += [d.workload for d in made.decisions if d.action is Action.EVICT]
        moved += [d.workload for d in made.decisions if d.action is Action.MOVE]
        carried_out = apply(snapshot, made)
        assert without_prompt_starts(carried_out, acts(plan(carried_out))) == []
        before, snapshot = snapshot, let_leave(carried_out)
        if snapshot == before:
            break
    else:
        pytest.fail(f"plans still act after {MOST_PLANS}")
    runs = [w for w in snapshot.workloads if w.phase is Phase.RUNNING]
    return Settled(
        {w.name: sum(w.placement.values()) for w in runs},
        frozenset(w.name for w in snapshot.workloads if w.phase is Phase.PENDING),
        evicted,
        moved,
    )
