"""Decision tables: each case names its policy in a sentence and states a whole plan."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduling.engine import Reason, divide, plan
from scheduling.engine.document.reader import parse
from tests.scheduling.engine.evolve import acts, apply, check_plan, without_prompt_starts

pytestmark = pytest.mark.long

CASES = Path(__file__).parent / "cases"


@cache
def _tables() -> list[tuple[str, Any]]:
    """(table, case) of every file."""
    return [
        (path.stem, case)
        for path in sorted(CASES.glob("*.yaml"))
        for case in yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["cases"]
    ]


def _whole_gpus(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """Whole GPUs that sum to ``total``: the largest remainders are rounded up, equal ones in order."""
    whole = {name: int(share + 1e-9) for name, share in shares.items()}
    by_remainder = sorted(shares, key=lambda name: whole[name] - shares[name])
    for name in by_remainder[: max(0, total - sum(whole.values()))]:
        whole[name] += 1
    return whole


def _cases(key: str) -> list[Any]:
    return [
        pytest.param(case, id=f"{table}: {case['name']}")
        for table, case in _tables()
        if key in case
    ]


@pytest.mark.parametrize("case", _cases("shares"))
def test_division_of_the_case_is_exact(case: dict[str, Any]) -> None:
    shares = divide(parse(case["snapshot"]))

    for name, expected in case["shares"].items():
        got = {queue: shares[queue][name].fair_share / 1000 for queue in expected}
        assert got == pytest.approx(expected, abs=1e-6)
    for name, expected in case.get("whole", {}).items():
        exact = {queue: shares[queue][name].fair_share / 1000 for queue in expected}
        assert _whole_gpus(exact, sum(expected.values())) == expected
    for name, expected in case.get("potential", {}).items():
        got = {queue: shares[queue][name].potential / 1000 for queue in expected}
        assert got == pytest.approx(expected, abs=1e-6)
    for name, expected in case.get("kept_back", {}).items():
        assert {queue: shares[queue][name].kept_back / 1000 for queue in expected} == expected
    flagged = [q for q in sorted(shares) if any(s.oversubscribed for s in shares[q].values())]
    assert flagged == case.get("oversubscribed", [])


@pytest.mark.parametrize("case", _cases("plan"))
def test_plan_of_the_case_is_the_whole_plan(case: dict[str, Any]) -> None:
    snapshot = parse(case["snapshot"])

    decided = plan(snapshot)

    check_plan(snapshot, decided)
    lines = [_line(d, want) for d, want in zip(decided.decisions, case["plan"], strict=False)]
    lines += [
        {"workload": d.workload, "action": d.action.value, "reason": d.reason.value}
        for d in decided.decisions[len(case["plan"]) :]
    ]
    assert lines == case["plan"]


@pytest.mark.parametrize("case", _cases("plan"))
def test_second_plan_of_the_case_does_nothing(case: dict[str, Any]) -> None:
    """Law 4."""
    snapshot = parse(case["snapshot"])

    after = apply(snapshot, plan(snapshot))
    assert without_prompt_starts(after, acts(plan(after))) == []


def _line(decision: Any, want: dict[str, Any]) -> dict[str, Any]:
    """The decision, as far as the case states it."""
    until = decision.until.isoformat() if decision.until else None
    known = {
        "workload": decision.workload,
        "action": decision.action.value,
        "reason": decision.reason.value,
        "for": decision.for_workload,
        "rule": decision.rule,
        "victims": list(decision.victims),
        "placement": dict(decision.placement),
        "roles": {role: dict(nodes) for role, nodes in decision.roles.items()},
        "devices": {node: list(devices) for node, devices in decision.devices.items()},
        "members": decision.members,
        "class": decision.gpu_class,
        "until": until,
        "sentence": decision.sentence,
        "numbers": dict(decision.numbers),
    }
    return {key: known[key] for key in want}


def test_tables_state_a_sentence_for_every_reason_of_a_plan() -> None:
    told = {
        line["reason"]
        for param in _cases("plan")
        for case in param.values
        for line in case["plan"]
        if "sentence" in line
    }

    # What pods there are, what people may have run and ask for, and how long a run lasted is known outside
    # the engine.
    outside = {Reason.GANG_INCOMPLETE, Reason.NOT_ALLOWED, Reason.RUN_TIME_OVER, Reason.NOT_BEFORE}
    outside |= {Reason.AFTER_OTHERS, Reason.ARRAY_AT_LIMIT}
    assert set(Reason) - told == outside
