"""Another recording beside the cluster's own past: told, and no part of the rule of promotion."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.web.learned import tables
from scheduling.services.learned import traced, verdicts
from scheduling.simulation.traces.ledger import Spell, write_ledger
from tests.factories import example_cluster
from tests.lab import with_work
from tests.learned import begun, by_weights, made_up, worked

pytestmark = pytest.mark.django_db
ORIGIN = datetime(2017, 10, 2, tzinfo=UTC)
NAME = "philly.ledger.csv"


@pytest.fixture
def cluster():
    made = example_cluster()
    with_work(made)
    return made


def a_trace(settings, folder, *, days=6, run_s=600, since=ORIGIN):
    """A job of one GPU every hour."""
    spells = [
        Spell(since + timedelta(hours=hour), run_s, 1, "search", "someone")
        for hour in range(24 * days)
    ]
    with (folder / NAME).open("w") as file:
        write_ledger(spells, file)
    settings.WEIR_LAB_TRACES = folder


def test_recording_is_one_more_window_that_counts_for_nothing(
    cluster, monkeypatch, settings, tmp_path
):
    a_trace(settings, tmp_path)
    made_up(monkeypatch, by_weights(1800))
    order = worked(begun(cluster, monkeypatch))
    kinds = [one["kind"] for one in order.verdict["windows"]]
    assert kinds == ["later", "later", "trace"]
    assert verdicts.standing(order.verdict).windows == 2
    told = tables.verdicts(order)
    assert [head.trace for head in told.heads] == ["", "", NAME]
    assert [len(row.cells) for row in told.bounds] == [2] * len(told.bounds)
    assert order.verdict["comparisons"] == 2 * 4


@pytest.mark.parametrize(
    "of",
    [
        {"days": 1},
        {"days": 2},  # less than 30 workloads after the warm-up
        {"run_s": 90 * 24 * 3600},  # asks for far more than there is
    ],
)
def test_recording_that_says_nothing_is_left_out(cluster, monkeypatch, settings, tmp_path, of):
    a_trace(settings, tmp_path, **of)
    order = begun(cluster, monkeypatch)
    assert [one["kind"] for one in order.windows] == ["later", "later"]


def test_recording_of_the_days_of_training_is_left_out(cluster, monkeypatch, settings, tmp_path):
    former = begun(cluster, monkeypatch)
    a_trace(settings, tmp_path, since=former.trained_from)
    former.delete()
    order = begun(cluster, monkeypatch)
    assert [one["kind"] for one in order.windows] == ["later", "later"]


def test_recording_with_too_much_work_is_left_out(cluster, monkeypatch, settings, tmp_path):
    a_trace(settings, tmp_path)
    monkeypatch.setattr(traced, "MOST_JOBS", 100)
    order = begun(cluster, monkeypatch)
    assert [one["kind"] for one in order.windows] == ["later", "later"]
