"""Plugin: of suites that touch rows only here and there, the tests that do. They run with the whole suites,
in the two processes whose databases are made already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

PARTLY: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "tests/scheduling/services/test_checkpoints.py": (("two_saves",), ("outlive",)),
    "tests/scheduling/services/queues": (
        ("save",), ("revert",), ("fit",), ("grid",), ("outlive",),
    ),
    "tests/security/test_hostile_input.py": (
        ("sign_in",), ("each_parameter",), ("in_the_path", "lead"), ("each_place", "lead"),
    ),
}  # fmt: skip
"""Path -> the words of a test's name, all of them, that make it one of these. Hostile texts are others here:
PostgreSQL refuses what SQLite stores, such as NUL and what is too long for a column."""
LEFT_OUT = ("process_that_died", "answer_is_as_it_was")
"""The one test that moves a clock which Redis does not follow; and answers that no database changes."""


def is_chosen(test: str) -> bool:
    if any(word in test for word in LEFT_OUT):
        return False
    for path, choices in PARTLY.items():
        if test.startswith(path):
            return any(_holds(test.removeprefix(path), words) for words in choices)
    return True


def _holds(name: str, words: Iterable[str]) -> bool:
    return all(word in name for word in words)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if is_chosen(item.nodeid)]
    for path in PARTLY:
        if not any(item.nodeid.startswith(path) for item in kept):
            raise pytest.UsageError(f"{path} has no test of these names any more")
    config.hook.pytest_deselected(items=[item for item in items if not is_chosen(item.nodeid)])
    items[:] = kept
