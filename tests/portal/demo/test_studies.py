"""The studies of capacity that a demo begins with: they answer."""

from __future__ import annotations

import pytest

from portal.accounts.models import User
from portal.reports.capacity import capacity, newest_study
from portal.web.studies.capacity import finding
from scheduling.models import Cluster, Study
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import doors, running
from scheduling.services.studies.capacity.curves import LEAST_REPLAYS
from tests.factories import example_cluster
from tests.foresight import live_of, with_past
from tests.scheduling.services.studies.made_up import made_up
from workshop.demo import studies

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Waits are made up: so long that each class misses its SLO, and holds it with some nodes more."""
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda study_id: None)
    made_up(monkeypatch)
    found = example_cluster()
    with_past(found)
    studies.promise(found)
    return found


def lived(cluster: Cluster) -> Study:
    studies.study(cluster)
    for made in Study.objects.filter(cluster=cluster):
        while running.work(made.pk):
            pass
    return newest_study(cluster)


def test_newest_tries_more_of_each_class_than_there_is_and_often_enough(cluster: Cluster) -> None:
    made = lived(cluster)
    report = capacity(cluster, made, User.objects.get(username="admin"))
    assert len(report.answers) == len(studies.SLO_MIN)
    for one in report.answers:
        assert one.curve is not None
        assert one.curve.replays >= LEAST_REPLAYS
        assert {rung.nodes for rung in one.curve.rungs} >= {0, *studies.STEPS}


def test_class_that_is_short_says_how_many_it_has_and_needs(cluster: Cluster) -> None:
    """The P90 of a seed is an hour times the seed over the nodes and one more: 10.6 min at 16 nodes."""
    h100 = cluster.gpu_classes.get(name=studies.H100)
    h100.wait_slo_s = 600
    h100.save()
    report = capacity(cluster, lived(cluster), User.objects.get(username="admin"))
    (one,) = [one for one in report.answers if one.gpu_class == h100]
    assert finding(report, one)[0] == (
        f"To hold its SLO of 10 min, {h100} needs 144 GPUs; it has 128."
    )


def test_second_start_begins_none(cluster: Cluster) -> None:
    studies.study(cluster)
    made = Study.objects.count()
    studies.study(cluster)
    assert Study.objects.count() == made == 2
