"""The one predicate: what it says where queues stand differently, and that nobody else says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
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


def test_limits_and_nominal_outside_the_predicate_forbid_nothing() -> None:
    """Other rooms quote them or divide by them; none compares what a queue would hold with one."""
    compared = re.compile(
        r"held(_fixed)?\[[^]]+\] \+ \S+ (<=|>) [^:]*(\.|\b)(cap|nominal|limit|fair)\["
    )
    found = {
        path.relative_to(ENGINE).as_posix()
        for path in ENGINE.rglob("*.py")
        if compared.search(path.read_text())
    }
    assert found == {"quota/standing.py"}
