"""Equal parts are one object; different ones stay what they are."""

from __future__ import annotations

import pytest

from scheduling.cluster.vocabulary import sharing
from scheduling.cluster.vocabulary.sharing import SharedParts


def test_equal_parts_are_held_once() -> None:
    shared = SharedParts()
    first = shared.one({"containers": [{"name": "main"}]})

    assert shared.one({"containers": [{"name": "main"}]}) is first
    assert shared.one({"containers": [{"name": "other"}]}) == {"containers": [{"name": "other"}]}


def test_no_more_than_a_bounded_number_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "MOST", 3)
    shared = SharedParts()
    for number in range(10):
        assert shared.one({"n": number}) == {"n": number}

    assert len(shared._known) <= 3
