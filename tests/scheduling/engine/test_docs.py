"""What the pages on the engine claim is executed."""

from __future__ import annotations

import doctest
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from scheduling.engine import Action, Policy, Reason
from scheduling.engine import plan as decide
from scheduling.engine.document import parse
from scheduling.engine.reasons.catalogue import ACTS, WAITS, ReasonEntry
from scheduling.engine.reasons.figures import Visibility, units

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {name: DOCS / f"{name}.md" for name in ("engine", "placement", "merit", "reasons")}
MOST_LINES = 400
"""Of the page on the rules: read at a sitting."""


@pytest.mark.parametrize("name", PAGES)
def test_examples_of_a_page_run(name: str) -> None:
    outcome = doctest.testfile(str(PAGES[name]), module_relative=False)

    assert outcome.attempted > 3
    assert outcome.failed == 0


def test_plan_of_the_first_example_is_what_the_page_prints() -> None:
    example, printed = re.findall(r"```(?:yaml|text)\n(.*?)```", _text("engine"), flags=re.DOTALL)[
        :2
    ]

    plan = decide(parse(yaml.safe_load(example)))

    shown = [line.partition("  ")[2].strip() for line in printed.strip().splitlines()[4:]]
    assert shown == [f"{d.workload}: {d.sentence}" for d in plan.decisions]


def test_page_on_the_rules_stays_short() -> None:
    assert len(_text("engine").splitlines()) <= MOST_LINES


def test_pages_name_every_action_reason_and_setting() -> None:
    text = "".join(map(_text, PAGES))
    settings = [field.name for field in fields(Policy)]

    assert [action for action in Action if not {f"**{action}**", f"`{action}`"} & words(text)] == []
    assert [name for name in [*Reason, *settings] if f"`{name}`" not in words(text)] == []


def _text(name: str) -> str:
    return PAGES[name].read_text(encoding="utf-8")


def words(text: str) -> set[str]:
    """What stands in bold or as code."""
    return set(re.findall(r"\*\*\w+\*\*|`\w+`", text))


def test_page_says_of_each_reason_what_the_engine_declares() -> None:
    text = _text("reasons")

    assert table(WAITS) in text, f"put this table into the page:\n\n{table(WAITS)}"
    assert table(ACTS) in text, f"put this table into the page:\n\n{table(ACTS)}"


def table(declared: Mapping[Reason, ReasonEntry]) -> str:
    rows = [f"| `{reason}` | {d.means} | {_numbers(d)} |" for reason, d in declared.items()]
    return "\n".join(["| reason | it means that | numbers |", "|---|---|---|", *rows])


def _numbers(declared: ReasonEntry) -> str:
    told = [
        name
        for name, (_, shown) in units(declared.figures).items()
        if shown is not Visibility.HIDDEN
    ]
    found = ", ".join([*told, *(["searches"] if declared.searches else [])])
    return "known outside the engine" if declared.outside else found


@pytest.mark.parametrize("name", PAGES)
def test_no_line_of_prose_is_wider_than_a_screen(name: str) -> None:
    wide = [line for line in prose(_text(name)) if len(line) > 120]

    assert wide == []


def prose(text: str) -> list[str]:
    """Lines that are neither examples nor rows of a table."""
    blocks = text.split("```")[::2]
    return [line for block in blocks for line in block.split("\n") if not line.startswith("|")]
