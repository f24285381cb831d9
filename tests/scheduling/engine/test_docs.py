"""What docs/engine.md claims is executed."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "engine.md"


def test_examples_of_the_page_run() -> None:
    outcome = doctest.testfile(str(PAGE), module_relative=False)

    assert outcome.attempted > 10
    assert outcome.failed == 0
