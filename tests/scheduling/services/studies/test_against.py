"""What speaks against a promotion: told from what was lived, and from what was changed since."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.models import Quota
from scheduling.services.studies.experiments.promoting import lacking
from scheduling.services.studies.experiments.results import Verdict, results
from tests.factories import NOW, example_cluster
from tests.lab import ORDER, experiment, lived, with_work

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    found = example_cluster()
    with_work(found)
    return found


def lacks(made, row=None, found=None):
    found = found or results(made)
    return {one["condition"]: one["sentence"] for one in lacking(made, found, row or found.rows[1])}


def test_few_replays_and_few_days_are_said(cluster, monkeypatch):
    told = lacks(lived(cluster, monkeypatch, replays=4, variants=[ORDER]))
    assert told["told"] == "Fewer than 5 replays (4): its effect is not told from noise."
    assert told["a_week"].startswith("Less than a week")


def test_replays_that_are_to_come_are_said(cluster, monkeypatch):
    made = experiment(cluster, monkeypatch, variants=[ORDER])
    found = results(made)
    row = replace(found.rows[1], done=5)
    assert lacks(made, row)["told"] == "1 of its 6 replays is not lived yet."


def test_period_lived_once_is_told_as_such(cluster, monkeypatch):
    assert (
        "lived once" in lacks(lived(cluster, monkeypatch, is_drawn=False, variants=[ORDER]))["told"]
    )


def test_queue_that_pays_for_a_gain_is_named(cluster, monkeypatch):
    made = lived(cluster, monkeypatch, variants=[ORDER])
    found = results(made)
    queue = found.queues[0]
    cells = tuple(
        replace(c, verdict=str(Verdict.WORSE if c.letter == "B" else "")) for c in queue.cells
    )
    found = replace(found, queues=(replace(queue, cells=cells),))
    gain, cost = found.rows[1].cells[0], found.rows[1].cells[4]
    better = replace(gain, difference=replace(gain.difference, verdict=Verdict.BETTER))
    worse = replace(cost, difference=replace(cost.difference, verdict=Verdict.WORSE))
    row = replace(found.rows[1], cells=(better, worse))
    told = lacks(made, row, found)
    assert (
        told["no_queue_pays"] == f"The gain over all is paid for by longer waits in {queue.queue}."
    )
    assert told["nothing_worse"] == "Worse by more than noise over all: evictions."
    assert "better" not in told


def test_quota_that_changed_since_the_period_is_said(cluster, monkeypatch):
    made = lived(cluster, monkeypatch, variants=[ORDER])
    assert "still_in_force" not in lacks(made)
    row = Quota.objects.filter(queue__cluster=cluster).first()
    Quota.objects.filter(pk=row.pk).update(effective_from=NOW - timedelta(days=1))
    assert "last on" in lacks(made)["still_in_force"]


def test_policy_that_changed_since_the_period_is_said(cluster, monkeypatch):
    made = lived(cluster, monkeypatch, variants=[ORDER])
    cluster.save()
    assert "still_in_force" not in lacks(made)
    cluster.cooldown_s += 60
    cluster.save()
    assert "still_in_force" in lacks(made)
