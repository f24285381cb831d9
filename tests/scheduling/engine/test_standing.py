"""The one predicate: what it says where queues stand differently, and that nobody else says it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduling.engine import plan
from scheduling.engine.document.reader import parse

ENGINE = Path(__file__).parents[3] / "scheduling" / "engine"
NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
GANG = {"name": "gang", "queue": "mine", "submitted": NOW, "priority_class": "train"}

SAYS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], str]] = {
    # what differs in the gang, in its queue or the one beside, and what is said of it
    "inside": ({"gpus": 4}, {}, "admit fits_nominal"),
    "on loan": ({"gpus": 6}, {}, "admit borrows"),
    "not lent": ({"gpus": 8}, {"beside": {"lending_limit": 0}}, "wait waits_for_quota"),
    "past nominal": ({"gpus": 6, "priority_class": "fixed"}, {}, "wait non_preemptible_over_nominal"),
    "over a limit": ({"gpus": 6}, {"mine": {"borrowing_limit": 1}}, "wait never_fits"),
    "hours spent": (
        {"gpus": 1}, {"mine": {"budget_gpu_hours": 1, "used_gpu_hours": 1}}, "wait hours_spent",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
def test_gang_as_its_queue_stands_gets_what_the_predicate_says(name: str) -> None:
    work, quotas, says = SAYS[name]
    own = {"nominal": 4, **quotas.get("mine", {})}
    other = {"nominal": 4, **quotas.get("beside", {})}
    made = plan(
        parse(
            {
                "now": NOW, "gpu_classes": [{"name": "gpu"}],
                "priority_classes": [{"name": "train"}, {"name": "fixed", "preemptible": False}],
                "nodes": [{"name": "n1", "gpu_class": "gpu", "gpus": 8}],
                "queues": [
                    {"name": "mine", "quotas": {"gpu": own}}, {"name": "beside", "quotas": {"gpu": other}},
                ],
                "workloads": [{**GANG, **work}],
            }
        )
    )  # fmt: skip
    (line,) = made.decisions
    assert f"{line.action} {line.reason}" == says


RIGHTS = {
    "budget_hours", "cap", "ceiling", "fair", "held_fixed", "lending", "limit", "most_gpus_per_user",
    "most_per_user", "most_running", "nominal", "stop",
}  # fmt: skip
"""Tables of what queues may hold."""
PREDICATE = ("quota/standing.py", "quota/limits.py", "quota/fair_share.py")
"""With what limits and lenders say in it."""
GIVES_OUT = {"division/divide.py", "division/share_out.py"}
"""They make the shares that the predicate reads."""
QUOTES = (
    "document",
    "explain/decode.py",
    "explain/shares.py",
    "reasons",
    "snapshot",
    "state",
    "whatif",
)
"""Written or read once a plan is made, or before: nothing is decided there."""
ASKS_OTHERWISE = {
    "admission/turns.py:_expected_turn": "when a share holds it, not whether",
    "eviction/carry_out.py:evict_the_unwanted": "who leaves whatever happens",
    "eviction/minimal_set.py:_narrows": "how far victims leave queues from their shares, all together",
    "order/refusals.py:_asks_in_vain": "whether a share has risen since",
    "quota/usage.py:dominant_ratio": "which queue goes first",
    "quota/usage.py:note_kept": "whether anybody keeps anything back",
}


def _reads(node: ast.AST, names: Set[str]) -> bool:
    return any(
        (isinstance(part, ast.Attribute) and part.attr in RIGHTS)
        or (isinstance(part, ast.Name) and part.id in names)
        for part in ast.walk(node)
    )


def _named(assigned: ast.Assign, names: Set[str]) -> Iterator[str]:
    """Names that stand for what is read of ``RIGHTS``, or was by one of ``names``."""
    for target in assigned.targets:
        pairs = [(target, assigned.value)]
        if isinstance(target, ast.Tuple) and isinstance(assigned.value, ast.Tuple):
            pairs = list(zip(target.elts, assigned.value.elts, strict=True))
        for name, value in pairs:
            if isinstance(name, ast.Name) and _reads(value, names):
                yield name.id


def _compares(function: ast.FunctionDef) -> bool:
    """Whether it holds anything against a right, by name or not."""
    names: set[str] = set()
    parts = list(ast.walk(function))
    for part in [part for part in parts if isinstance(part, ast.Assign)] * 2:
        names |= {*_named(part, names)}
    return any(
        _reads(part, names)
        for part in parts
        if isinstance(part, ast.Compare)
        or (isinstance(part, ast.Call) and getattr(part.func, "id", "") in ("min", "max"))
    )


def _comparing(source: str) -> set[str]:
    functions = [f for f in ast.walk(ast.parse(source)) if isinstance(f, ast.FunctionDef)]
    return {function.name for function in functions if _compares(function)}


@pytest.mark.parametrize(
    "line",
    [
        "return usage.gpus[c, q] + need <= world.quotas.nominal[c, q]",
        "most = division.fair[c, q]; left = most - need; return left > 0",
        "return usage.running[q] < min(tree.most_running[q], 9)",
    ],
)
def test_second_permission_is_seen_however_it_is_written(line: str) -> None:
    assert _comparing(f"def may_start(world):\n    {line}") == {"may_start"}


def test_figure_that_is_quoted_is_no_permission() -> None:
    assert _comparing("def quote(out):\n    out.figures[w, 0] = division.fair[c, q]") == set()


def test_rights_are_compared_by_the_predicate_alone() -> None:
    """All else that decides asks ``quota/standing.py``, or one of its comparisons by its name."""
    found = {
        f"{name}:{function}"
        for path in ENGINE.rglob("*.py")
        if (name := path.relative_to(ENGINE).as_posix()) not in GIVES_OUT
        and not name.startswith((*PREDICATE, *QUOTES))
        for function in _comparing(path.read_text())
    }
    assert found == {*ASKS_OTHERWISE}
