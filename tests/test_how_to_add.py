"""Following docs/how-to-add.md is enough: its example of each change stands in the files it names alone."""

from __future__ import annotations

import re
import subprocess

import pytest
from django.conf import settings

PAGES_OF_THE_ENGINE = (
    "docs/engine.md",
    "docs/placement.md",
    "docs/reasons.md",
    "docs/snapshot.schema.json",
)
PRODUCT = (
    "scheduling",
    "portal",
    "weir",
    "templates",
    "static",
    "docker",
    "deploy",
    *PAGES_OF_THE_ENGINE,
)
PAGE = (settings.BASE_DIR / "docs" / "how-to-add.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## … ")[1:]}


@pytest.mark.parametrize("change", SECTIONS)
def test_example_of_a_change_stands_in_the_files_that_are_named_and_nowhere_else(
    change: str,
) -> None:
    section = SECTIONS[change]
    example = re.search(r"Example: .*\(`(.+)`\)", section)
    assert example
    steps = "\n".join(part for part in section.split("\n\n") if part.startswith("1. "))
    named = {path for path in re.findall(r"`([\w./-]+)`", steps) if path.startswith(PRODUCT)}
    found = subprocess.run(
        ["git", "grep", "-lE", example[1], "--", *PRODUCT, ":!*/migrations/*"],
        cwd=settings.BASE_DIR, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(found.stdout.split()) == named


def test_every_file_that_is_named_is_there() -> None:
    paths = [
        path
        for path in re.findall(r"`([\w./-]+\.\w+)`", PAGE)
        if "/" in path and "explain/" not in path
    ]
    assert [path for path in paths if not (settings.BASE_DIR / path).exists()] == []
    assert len(SECTIONS) == 7
