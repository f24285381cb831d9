"""What a demo puts off until its first page is there, and what pages say of it meanwhile."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.display.later import MONTHS, STARTS, note, progress, unfinished
from scheduling.models import UsageSample
from scheduling.services.ledger.demand_forecasts import forecast_queues
from scheduling.services.snapshot import build as snapshots
from scheduling.services.worker import parts
from scheduling.services.worker.names import STUDIES
from tests.factories import example_cluster, make_member
from tests.foresight import live_of
from tests.portal.demo.past import lived, organisation
from workshop.demo import later

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(settings, tmp_path: Path, monkeypatch) -> Path:
    """Nobody of the organisation acts: `test_acting`; no study is on, whatever another test left running."""
    monkeypatch.setattr(later, "act", lambda cluster: None)
    monkeypatch.setattr(parts, "_studies", bytearray(1))
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


def test_report_that_months_of_demand_are_no_part_of_says_nothing_of_them(
    client: Client, folder: Path
) -> None:
    cluster = example_cluster()
    client.force_login(make_member(cluster.queues.get(parent=None), may_operate=True))
    note(folder, {MONTHS: {"since": timezone.now().isoformat(), "done": 0, "of": 5}})
    said = {
        name: client.get(reverse(f"reports:{name}", args=[cluster.name])).content.decode()
        for name in ("waits", "forecast")
    }
    assert "are being computed" not in said["waits"]
    assert "none of 5 steps is done yet" in said["forecast"]


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
    assert set(progress(folder)) == {MONTHS, STARTS}
    assert unfinished(STARTS).of == len(past.moments)

    later.work_off(folder)
    assert len(written) == 1
    assert progress(folder) == {}
    assert list(folder.iterdir()) == []


def test_studies_have_something_to_do_it_ends_after_a_step_and_the_next_goes_on_there(
    folder: Path, monkeypatch
) -> None:
    cluster = organisation()
    monkeypatch.setattr(snapshots, "live", live_of)
    written, forecast = [], []
    monkeypatch.setattr(later, "write_older", lambda *given: written.append(given))
    monkeypatch.setattr(later, "look_ahead", lambda of, queues: forecast.extend(queues))
    later.put_off(cluster, folder, [], before=cluster.now())
    steps = []
    while progress(folder):
        steps.append(unfinished(MONTHS).done)
        later.work_off(folder, lambda: True)
    assert len(written) == 1
    assert forecast == list(forecast_queues(cluster))
    assert steps == [0, 0, *range(len(forecast) + 1)]  # studies are asked for, months written


def test_cpu_seconds_of_all_its_processes_count(folder: Path, monkeypatch) -> None:
    cluster = organisation()
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(later, "write_older", lambda *given: None)
    monkeypatch.setattr(later, "look_ahead", lambda *given: None)
    later.put_off(cluster, folder, [], before=cluster.now())
    monkeypatch.setattr(later.time, "process_time", lambda: 50.0)
    for _ in range(3):
        later.work_off(folder, lambda: True)
    assert progress(folder)[STARTS]["spent_s"] == 150.0


def test_it_begins_where_something_is_left_and_no_study_is_on(folder: Path, monkeypatch) -> None:
    begun = later.part(folder, folder / "broker")
    assert not begun.is_wanted()
    note(folder, {STARTS: {"since": timezone.now().isoformat(), "done": 0, "of": 1}})
    assert begun.is_wanted()
    message = folder / "broker" / STUDIES / "1"
    message.parent.mkdir(parents=True)
    message.touch()
    assert not begun.is_wanted()
    message.unlink()
    assert begun.is_wanted()


def test_it_fails_each_time_the_demo_is_left_alone(folder: Path) -> None:
    note(folder, {STARTS: {"since": timezone.now().isoformat(), "done": 0, "of": 1}})
    begun = later.part(folder, folder / "broker")
    for pid in range(later.MOST_TURNS):
        assert begun.is_wanted()
        begun.gone(pid)
    assert not begun.is_wanted()


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
