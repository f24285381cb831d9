"""A reservation and a predicted start are one answer, and what was told of a start is on record."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.selectors import history
from scheduling.cluster.vocabulary import labels
from scheduling.engine import model as m
from scheduling.models import (
    ForecastChange,
    ForecastOutcome,
    ForecastRun,
    PriorityClass,
    Quota,
    StartForecast,
    State,
    ToldStart,
    headline,
)
from scheduling.services.starts import record, refresh
from scheduling.services.starts.accuracy import WAS_TOLD
from scheduling.services.starts.tell import DUE, PASSED, predicted_start, said_of
from scheduling.simulation.ahead.bands import Band
from tests.factories import NOW, make_cluster, make_workload
from tests.scheduling.kube import World

pytestmark = pytest.mark.django_db
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.mark.parametrize(
    ("in_", "p50", "p90", "why_not"),
    [
        (10 * MINUTE, 10, 70, ""),
        (timedelta(), None, 60, DUE),
        (-59 * MINUTE, None, 1, DUE),
        (-60 * MINUTE, None, None, PASSED),
    ],
)
def test_time_that_has_passed_is_no_time_to_come(in_, p50, p90, why_not) -> None:
    row = StartForecast(at=NOW - 5 * HOUR, p50_at=NOW + in_, p90_at=NOW + in_ + HOUR)
    found = predicted_start(row, NOW)
    left = [None if at is None else (at - NOW) / MINUTE for at in (found.p50, found.p90)]
    assert (*left, found.why_not) == (p50, p90, why_not)


@pytest.fixture
def reserved(world: World) -> World:
    """A run of an hour leaves 3 GPUs free on each node, and ``wide`` needs 6 on one."""
    Quota.objects.filter(queue__name="products").update(nominal_gpus=0)
    Quota.objects.filter(queue__name="research").update(nominal_gpus=16_000)
    runs = {labels.PREDICTED_SECONDS: "3600,7200"}
    for name in ("half-1", "half-2"):
        job = world.manifest(name, gpus=5)
        job["metadata"].setdefault("annotations", {}).update(runs)
        world.kube.create("/apis/batch/v1/namespaces/default/jobs", job)
    world.cycles_until(
        lambda: all(world.row(n).state == State.RUNNING for n in ("half-1", "half-2"))
    )
    world.job("wide", gpus=6)
    world.cycle()
    assert world.row("wide").reason == m.Reason.RESERVED
    return world


def foretold(world: World, name: str, in_: timedelta) -> StartForecast:
    now = world.cluster.now()
    ForecastRun.objects.update_or_create(
        cluster=world.cluster, defaults={"at": now, "began_at": now}
    )
    return StartForecast.objects.update_or_create(
        workload=world.row(name), defaults={"at": now, "p50_at": now + in_, "p90_at": now + 2 * in_}
    )[0]


def test_reservation_tells_no_earlier_time_than_the_forecast(reserved: World) -> None:
    until = reserved.row("wide").until
    assert until is not None
    told = foretold(reserved, "wide", 9 * HOUR)
    reserved.cycle()
    row = reserved.row("wide")
    assert row.until == told.p50_at > until
    assert f"expected by {told.p50_at:%Y-%m-%d %H:%M} UTC" in row.sentence


def test_reservation_that_is_later_than_the_forecast_stands(reserved: World) -> None:
    until = reserved.row("wide").until
    foretold(reserved, "wide", 10 * MINUTE)
    reserved.cycle()
    assert reserved.row("wide").until == until


def test_passes_write_down_what_was_told_and_why_it_is_told_no_longer(
    reserved: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "KNOWN_RUNS", 0)
    monkeypatch.setattr(refresh, "WIDE", 1e9)
    monkeypatch.setattr(refresh, "is_due", lambda *_: True)
    refresh.refresh(reserved.cluster)
    work = reserved.row("wide")
    (first,) = work.told_starts.all()
    assert first.change == ForecastChange.FIRST
    assert first.p50_at == said_of(work).p50

    reserved.edit("wide", {"metadata": {"annotations": {labels.HOLD: labels.ON_HOLD}}})
    reserved.cycles_until(lambda: reserved.row("wide").held)
    refresh.refresh(reserved.cluster)
    lost = work.told_starts.last()
    assert (lost.change, lost.breaks, lost.note) == (ForecastChange.LOST, True, refresh.NOT_BY_TIME)
    assert said_of(reserved.row("wide")).p90 is None


def test_reservation_tells_by_when_where_no_forecast_does_and_its_loss_is_told_with_why(
    reserved: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "is_due", lambda *_: True)
    refresh.refresh(reserved.cluster)
    work = reserved.row("wide")
    (first,) = work.told_starts.all()
    assert (first.change, first.p50_at, first.p90_at) == (ForecastChange.FIRST, None, work.until)
    assert said_of(work).why_not == refresh.TOO_YOUNG

    PriorityClass.objects.create(name="urgent", value=90)
    reserved.job("first", gpus=6, priority_class="urgent")
    reserved.cycles_until(lambda: reserved.row("wide").reason != m.Reason.RESERVED)
    refresh.refresh(reserved.cluster)
    lost = work.told_starts.last()
    why = headline(reserved.row("wide").reason).lower()
    assert (lost.change, lost.breaks) == (ForecastChange.LOST, True)
    assert lost.note == f"No nodes are kept for it any longer: {why}."


def keep(work, in_, at):
    """A pass whose forecast names no time, while nodes are kept for ``work``."""
    work.reason, work.until = m.Reason.RESERVED, at + in_
    record.note(work.cluster, [StartForecast(workload=work, at=at, why_not=refresh.TOO_WIDE)], at)


@pytest.mark.parametrize(
    ("in_", "changes"),
    [
        (65 * MINUTE, [ForecastChange.FIRST]),
        (3 * HOUR, [ForecastChange.FIRST, ForecastChange.LATER]),
        (20 * MINUTE, [ForecastChange.FIRST, ForecastChange.SOONER]),
    ],
)
def test_reservation_that_moves_by_more_than_a_little_is_on_record(work, in_, changes) -> None:
    keep(work, HOUR, NOW)
    keep(work, in_, NOW)
    rows = list(work.told_starts.all())
    assert [row.change for row in rows] == changes
    assert [row.breaks for row in rows] == [row.change == ForecastChange.LATER for row in rows]


def test_forecast_goes_before_the_reservation(work) -> None:
    keep(work, HOUR, NOW)
    work.until = NOW + 2 * HOUR
    tell(work, HOUR, NOW + MINUTE)
    assert work.told_starts.last().p50_at == NOW + MINUTE + HOUR


def test_band_that_is_too_wide_to_be_told_is_kept_to_learn_from(
    reserved: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "KNOWN_RUNS", 0)
    monkeypatch.setattr(refresh, "WIDE", 0.0)
    monkeypatch.setattr(refresh.Correction, "correct", lambda *_: Band(HOUR.total_seconds(), 1e5))
    refresh.refresh(reserved.cluster)
    assert StartForecast.objects.get().why_not == refresh.TOO_WIDE
    kept = ForecastOutcome.objects.get()
    assert (kept.workload.name, kept.p90_s) == ("wide", 1e5)
    assert not ForecastOutcome.objects.filter(WAS_TOLD)


def test_band_without_width_hours_ahead_is_not_told_but_learned_from(
    reserved: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "KNOWN_RUNS", 0)
    monkeypatch.setattr(refresh.Correction, "correct", lambda *_: Band(1e5, 1e5))
    refresh.refresh(reserved.cluster)
    found = StartForecast.objects.get()
    assert (found.p50_at, found.p90_at, found.why_not) == (None, None, refresh.NO_END)
    assert ForecastOutcome.objects.get().p90_s == 1e5
    assert not ForecastOutcome.objects.filter(WAS_TOLD)


def test_band_without_width_within_the_hour_is_told() -> None:
    assert not refresh.too_vague(Band(31.0, 31.0), Band(10.0, 60.0), refresh.KNOWN_RUNS)


@pytest.mark.parametrize(("raw", "why_not"), [((7200, 7200), ""), ((3600, 5400), refresh.NO_END)])
def test_futures_that_agree_are_told_while_a_width_that_was_lost_is_not(raw, why_not) -> None:
    assert refresh.too_vague(Band(7200.0, 7200.0), Band(*raw), refresh.KNOWN_RUNS) == why_not


def tell(work, in_, at, **more):
    row = StartForecast(workload=work, at=at, p50_at=at + in_, p90_at=at + 2 * in_, **more)
    record.note(work.cluster, [row], at)


@pytest.fixture
def work():
    return make_workload(None, cluster=make_cluster(), submitted_at=NOW - HOUR)


@pytest.mark.parametrize(
    ("in_", "after", "changes"),
    [
        (2 * HOUR, HOUR, [ForecastChange.FIRST, ForecastChange.LATER]),
        (HOUR, HOUR, [ForecastChange.FIRST, ForecastChange.LATER]),
        (65 * MINUTE, 5 * MINUTE, [ForecastChange.FIRST]),
        (20 * MINUTE, 5 * MINUTE, [ForecastChange.FIRST, ForecastChange.SOONER]),
    ],
)
def test_record_has_what_changes_by_more_than_a_little(work, in_, after, changes) -> None:
    tell(work, HOUR, NOW)
    tell(work, in_, NOW + after)
    assert [row.change for row in work.told_starts.all()] == changes


def test_later_than_the_p90_that_was_told_breaks_what_was_told(work) -> None:
    tell(work, HOUR, NOW)
    tell(work, 50 * MINUTE, NOW + 40 * MINUTE)
    tell(work, 3 * HOUR, NOW + HOUR)
    assert [row.breaks for row in work.told_starts.all()] == [False, False, True]
    assert work.told_starts.last().note


def test_new_wait_begins_a_record_of_its_own(work) -> None:
    tell(work, HOUR, NOW)
    work.started_at = NOW + 2 * HOUR
    tell(work, 9 * HOUR, NOW + 3 * HOUR)
    assert [row.change for row in work.told_starts.all()] == [
        ForecastChange.FIRST,
        ForecastChange.FIRST,
    ]


def test_record_of_a_long_wait_keeps_its_first_and_its_newest(work) -> None:
    for i in range(record.MOST + 9):
        tell(work, (1 + i % 2 * 5) * HOUR, NOW + i * MINUTE)
    kept = list(work.told_starts.all())
    assert len(kept) == record.MOST
    assert (kept[0].at, kept[-1].at) == (NOW, NOW + (record.MOST + 8) * MINUTE)


def test_history_of_the_page_has_what_was_told(work) -> None:
    tell(work, HOUR, NOW)
    rows = list(ToldStart.objects.all())
    (entry,) = history.entries(work, [], [], [], None, now=NOW, told_starts=rows)
    assert (entry.head, entry.span) == ("Start told", (NOW + HOUR, NOW + 2 * HOUR))


def test_history_of_the_page_has_what_a_reservation_told(work) -> None:
    keep(work, HOUR, NOW)
    rows = list(ToldStart.objects.all())
    (entry,) = history.entries(work, [], [], [], None, now=NOW, told_starts=rows)
    assert (entry.head, entry.span) == ("Start told", (None, NOW + HOUR))
