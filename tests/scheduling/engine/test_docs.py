"""What docs/engine.md claims is executed."""

from __future__ import annotations

import doctest
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from scheduling.engine import Action, Policy, Reason
from scheduling.engine.reasons.catalogue import ACTS, WAITS, Declared
from scheduling.engine.reasons.figures import Shown, units

PAGE = Path(__file__).parents[3] / "docs" / "engine.md"


def test_examples_of_the_page_run() -> None:
    outcome = doctest.testfile(str(PAGE), module_relative=False)

    assert outcome.attempted > 10
    assert outcome.failed == 0


def test_page_names_every_action_reason_and_setting() -> None:
    text = PAGE.read_text(encoding="utf-8")
    settings = [field.name for field in fields(Policy)]

    assert [action for action in Action if not {f"**{action}**", f"`{action}`"} & words(text)] == []
    assert [name for name in [*Reason, *settings] if f"`{name}`" not in words(text)] == []


def words(text: str) -> set[str]:
    """What stands in bold or as code."""
    return set(re.findall(r"\*\*\w+\*\*|`\w+`", text))


def test_page_says_of_each_reason_what_the_engine_declares() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert table(WAITS) in text, f"put this table into the page:\n\n{table(WAITS)}"
    assert table(ACTS) in text, f"put this table into the page:\n\n{table(ACTS)}"


def table(declared: Mapping[Reason, Declared]) -> str:
    rows = [f"| `{reason}` | {d.means} | {_numbers(d)} |" for reason, d in declared.items()]
    return "\n".join(["| reason | it means that | numbers |", "|---|---|---|", *rows])


def _numbers(declared: Declared) -> str:
    told = [
        name for name, (_, shown) in units(declared.figures).items() if shown is not Shown.HIDDEN
    ]
    found = ", ".join([*told, *(["searches"] if declared.searches else [])])
    return "known outside the engine" if declared.outside else found


def test_no_line_of_prose_is_wider_than_a_screen() -> None:
    wide = [line for line in prose(PAGE.read_text(encoding="utf-8")) if len(line) > 120]

    assert wide == []


def prose(text: str) -> list[str]:
    """Lines that are neither examples nor rows of a table."""
    blocks = text.split("```")[::2]
    return [line for block in blocks for line in block.split("\n") if not line.startswith("|")]
