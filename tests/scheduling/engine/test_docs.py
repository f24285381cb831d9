"""What docs/engine.md claims is executed."""

from __future__ import annotations

import doctest
import re
from dataclasses import fields
from pathlib import Path

from scheduling.engine import Action, Policy, Reason

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
