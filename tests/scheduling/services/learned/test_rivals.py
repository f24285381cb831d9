"""Orders that the engine cannot be stand beside those that it can."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.web.learned import tables
from scheduling.models import LearnedLife
from scheduling.services.learned import rivals
from scheduling.services.learned.figures import WAIT
from tests.factories import example_cluster
from tests.lab import with_work
from tests.learned import SMALL, begun, by_weights, made_up, worked

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    made = example_cluster()
    with_work(made)
    return made


def test_rivals_are_compared_on_every_window(cluster, monkeypatch):
    made_up(monkeypatch, by_weights(1800))
    monkeypatch.setattr(rivals, "of_life", lambda *_: {WAIT: 7200.0})
    order = worked(begun(cluster, monkeypatch, replace(SMALL, rivals=True)))
    for window in order.verdict["windows"]:
        cells = {one["order"]: one for one in window["against"]}
        assert cells["gittins"]["verdict"] == cells["native"]["verdict"] == "better"
    assert rivals.are_lived(order)
    rows = {row.name: row.says for row in tables.verdicts(order).rows}
    assert rows["Gittins index"] == "evicts, no shares"
    assert rows["Promise"] == "decides now"
    assert LearnedLife.objects.filter(under="native").count() == 2 * SMALL.replays


def test_where_they_cannot_be_lived_there_are_none(cluster, monkeypatch):
    monkeypatch.setattr(rivals, "can_live", lambda world, period: False)
    order = begun(cluster, monkeypatch, replace(SMALL, rivals=True))
    assert not rivals.are_lived(order)
