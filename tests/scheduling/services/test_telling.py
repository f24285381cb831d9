"""Whose rows are told, and when."""

from __future__ import annotations

import pytest

from scheduling.engine import model as m
from scheduling.models import Workload
from scheduling.services.cycle.record import plan as telling
from scheduling.services.cycle.record.plan import Telling

WAITS = m.Reason.NO_FREE_GPUS


def line(*reasons: str) -> list[Workload | None]:
    return [Workload(reason=reason) for reason in reasons]


def test_new_reasons_come_first_and_others_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "TOLD_ROWS", 2)
    monkeypatch.setattr(telling, "MOVED_ROWS", 1)
    rows, told = [*line(WAITS, "", "", "", WAITS), None], Telling()

    turns = [told.choose(rows, [WAITS] * len(rows)) for _ in range(3)]
    assert turns == [([1, 2], [0]), ([1, 2], [4]), ([1, 2], [0])]


def test_long_line_is_looked_along_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(telling.time, "monotonic", lambda: now[0])
    long, told = telling.TOLD_ROWS + 1, Telling()

    assert told.is_due(long)
    assert not told.is_due(long)
    assert told.is_due(long - 1)
    now[0] += telling.TOLD_EVERY_S
    assert told.is_due(long)
