"""Every plan is checked, and so is the state behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduling.engine import Frame, Plan, Snapshot, plan
from scheduling.engine.document.reader import parse
from tests.scheduling.engine.evolve import check_plan
from tests.scheduling.engine.state import check_state

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


class Planned:
    """``planned(document)`` plans the document; all that was planned is checked at teardown."""

    def __init__(self) -> None:
        self.made: list[tuple[Snapshot, Plan]] = []

    def __call__(self, **parts: Any) -> Plan:
        document = {
            "now": NOW,
            "gpu_classes": [{"name": "h100"}],
            "priority_classes": [{"name": "train"}],
            **parts,
        }
        snapshot = parse(document)
        self.made.append((snapshot, plan(snapshot)))
        return self.made[-1][1]


@pytest.fixture
def planned() -> Iterator[Callable[..., Plan]]:
    maker = Planned()
    yield maker
    for snapshot, made in maker.made:
        check_plan(snapshot, made)


@pytest.fixture(autouse=True, scope="module")
def checked_state() -> Iterator[None]:
    """The tables behind every plan that any test of the engine makes are checked when it is made."""
    widen = Frame.widen

    def widen_and_check(frame: Frame) -> bool:
        again = widen(frame)
        if not again:
            check_state(frame)
        return again

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Frame, "widen", widen_and_check)
        yield
