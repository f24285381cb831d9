"""What a demo puts off until its first page is there, and what pages say of it meanwhile."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.display.later import MONTHS, STARTS, left, note, unfinished
from scheduling.models import UsageSample
from scheduling.services.snapshot import build as snapshots
from tests.factories import example_cluster, make_member
from tests.foresight import live_of
from tests.portal.demo.past import lived, organisation
from workshop.demo import later

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(settings, tmp_path: Path) -> Path:
    settings.WEIR_DEMO_FOLDER = str(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "address"),
    [(STARTS, "web:start_forecasts"), (MONTHS, "web:capacity"), (MONTHS, "reports:forecast")],
)
def test_page_says_what_will_stand_there_while_it_is_computed(
    client: Client, folder: Path, kind: str, address: str
) -> None:
    cluster = example_cluster()
    client.force_login(make_member(cluster.queues.get(parent=None), may_operate=True))
    begun = timezone.now() - timedelta(minutes=3)
    note(folder, {kind: {"since": begun.isoformat(), "done": 12, "of": 42}})
    page = client.get(reverse(address, args=[cluster.name])).content.decode()
    assert "are being computed" in page
    assert "begun 3 min ago, 12 of 42 steps done" in page

    note(folder, {})
    assert (
        "are being computed"
        not in client.get(reverse(address, args=[cluster.name])).content.decode()
    )


def test_nothing_is_unfinished_outside_a_demo(settings) -> None:
    settings.WEIR_DEMO_FOLDER = ""
    assert unfinished(STARTS) is None


def test_what_was_put_off_is_gone_once_it_is_worked_off(folder: Path, monkeypatch) -> None:
    cluster = organisation()
    past = lived(cluster, 13)
    past.save()
    monkeypatch.setattr(snapshots, "live", live_of)
    written = []
    monkeypatch.setattr(later, "write_older", lambda *given: written.append(given))
    later.put_off(cluster, folder, past.moments, before=past.moments[0].now)
    assert set(left(folder)) == {MONTHS, STARTS}
    assert unfinished(STARTS).of == len(past.moments)

    later.work_off(folder)
    assert len(written) == 1
    assert left(folder) == {}
    assert list(folder.iterdir()) == []


def test_months_that_were_written_in_part_are_written_anew(folder: Path, monkeypatch) -> None:
    cluster = organisation()
    before = cluster.now()
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(
        later, "write_older", lambda of, *rest: UsageSample.objects.create(
            queue=of.queues.first(), gpu_class=of.gpu_classes.first(), resolution="hour",
            start=before - timedelta(weeks=2), seconds=3600,
        ),
    )  # fmt: skip
    for _ in range(2):
        later._write_months(cluster, before)
    assert UsageSample.objects.count() == 1
