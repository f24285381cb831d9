"""The experiment that a demo begins with."""

from __future__ import annotations

import pytest

from scheduling.models import Study, StudyKind
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import running
from tests.factories import example_cluster
from tests.foresight import live_of
from tests.lab import with_work
from workshop.demo import experiment as demo
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(snapshots, "live", live_of)
    found = example_cluster()
    with_work(found)
    return found


def test_demo_begins_one_with_enough_replays_for_verdicts(cluster):
    demo.begin()
    made = Study.objects.get(kind=StudyKind.EXPERIMENT)
    assert [one.letter for one in made.variants.all()] == ["A", "B", "C"]
    assert made.variants.get(letter="C").changes[0]["gpu_class"] == H100
    while running.work(made.pk):
        pass
    assert set(made.variants.values_list("state", flat=True)) == {"done"}
    assert made.replays >= 5


def test_second_start_begins_no_other(cluster):
    demo.begin()
    demo.begin()
    assert Study.objects.count() == 2


def test_demo_asks_a_what_if_and_keeps_it(cluster):
    demo.begin()
    asked = Study.objects.get(kind=StudyKind.REPLAY)
    assert asked.is_kept
    assert asked.changes == demo.WONDERED


def test_too_short_a_past_begins_none(cluster):
    cluster.workloads.all().delete()
    demo.begin()
    assert not Study.objects.filter(kind=StudyKind.EXPERIMENT).exists()
