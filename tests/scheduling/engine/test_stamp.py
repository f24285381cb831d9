"""Machine code on disk stays valid until something changes that it depends on."""

from __future__ import annotations

from typing import Any

import pytest
from numba import njit

from scheduling.engine.compile.stamp import stamp_of

LIMIT = "LIMIT = {limit}\n"
CALLED = '''
def called(x):
    """{doc}"""
    # {comment}
    return x + {more}
'''
KERNEL = """
def kernel(x):
    return called(x) if x < LIMIT else 0
"""


def _stamp(
    limit: int = 1, doc: str = "Adds.", comment: str = "", more: int = 1, beside: str = ""
) -> str:
    """Of a kernel that calls a function and reads a constant of its module."""
    scope: dict[str, Any] = {"__name__": "somewhere"}
    called = CALLED.format(doc=doc, comment=comment, more=more)
    exec(LIMIT.format(limit=limit) + beside + called + KERNEL, scope)  # noqa: S102 - text above
    scope["called"] = njit(scope["called"])
    return stamp_of(scope["kernel"])


@pytest.fixture(autouse=True)
def compiled() -> None:
    """Without the compiler there is no machine code, nor anything compiled to call."""
    from scheduling.engine.compile.kernel import PLAIN

    if PLAIN:
        pytest.skip("nothing is compiled")


@pytest.mark.parametrize(
    "edit",
    [{"doc": "Adds one."}, {"comment": "why"}, {"beside": "def other(x):\n    return x * 2\n"}],
)
def test_edit_of_what_a_kernel_does_not_run_leaves_its_stamp(edit: dict[str, Any]) -> None:
    assert _stamp(**edit) == _stamp()


@pytest.mark.parametrize("edit", [{"more": 2}, {"limit": 2}])
def test_edit_of_what_a_kernel_runs_or_reads_changes_its_stamp(edit: dict[str, Any]) -> None:
    assert _stamp(**edit) != _stamp()
