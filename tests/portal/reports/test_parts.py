"""The small parts: time cut into pieces, labels kept apart, cells of CSV, the address's query."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.display.csv import Table, csv_cell, csv_lines
from portal.display.periods import POINTS, Periods, epochs, hour_of_week, step_s
from portal.display.spread import Spread
from portal.reports.figures.labels import HEIGHT_PX, beside_lines
from portal.reports.figures.theme import apart
from portal.reports.filters import ReportFilters
from portal.reports.words import (
    and_list,
    before_label,
    hour_name,
    range_label,
    range_note,
    span_label,
)

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@given(st.floats(60, 5 * 366 * 86400), st.sampled_from([60, 3600, 86400]))
def test_step_never_makes_more_points_than_a_chart_shows(seconds: float, finest: int) -> None:
    step = step_s(timedelta(seconds=seconds), finest)
    assert step >= finest
    assert seconds / step <= POINTS


def test_days_begin_at_local_midnight_across_the_change_of_the_clock() -> None:
    periods = Periods.of(at("2026-10-23T22:00"), at("2026-10-27T23:00"), BERLIN)
    lengths = np.diff(epochs(periods.edges)) / 3600
    assert periods.unit == "day"
    assert lengths.tolist() == [24, 25, 24, 24]


def test_first_and_last_day_may_be_cut_short() -> None:
    periods = Periods.of(at("2026-11-05T09:42"), at("2026-11-08T09:42"), ZoneInfo("UTC"))
    assert periods.starts[0] == at("2026-11-05T09:42")
    assert periods.starts[1] == at("2026-11-06T00:00")
    assert len(periods.starts) == 4


@given(st.integers(1, 400 * 24), st.floats(0, 0.999))
def test_every_instant_falls_into_the_piece_that_holds_it(range_hours: int, part: float) -> None:
    start = at("2026-01-31T17:23")
    end = start + timedelta(hours=range_hours)
    periods = Periods.of(start, end, BERLIN)
    instant = start + (end - start) * part
    i = int(periods.index(epochs([instant]))[0])
    assert periods.edges[i] <= instant < periods.edges[i + 1]


@given(st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)))
def test_hour_of_week_is_the_local_one(naive: datetime) -> None:
    local = naive.replace(tzinfo=UTC).astimezone(BERLIN)
    found = hour_of_week(epochs([local]), BERLIN)
    assert found.tolist() == [local.weekday() * 24 + local.hour]


def test_hour_of_week_is_the_local_one_where_a_zone_is_three_quarters_off() -> None:
    kathmandu = ZoneInfo("Asia/Kathmandu")
    local = datetime(2026, 1, 5, 1, 10, tzinfo=kathmandu)
    assert hour_of_week(epochs([local]), kathmandu).tolist() == [1]


@given(st.lists(st.floats(0, 300), max_size=8), st.floats(1, 20))
def test_labels_stand_apart_and_keep_their_order(wanted: list[float], gap: float) -> None:
    placed = apart(wanted, gap)
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    heights = [placed[i] for i in order]
    assert all(b - a >= gap - 1e-6 for a, b in itertools.pairwise(heights))


def test_labels_with_room_stay_where_they_want() -> None:
    assert apart([10.0, 50.0, 90.0], 15) == [10.0, 50.0, 90.0]


def test_names_of_close_lines_do_not_meet() -> None:
    xs = np.linspace(0, 300, 60)
    lines = [np.linspace(0, 200, 60) + offset for offset in (0.0, 4.0, 8.0)]
    boxes = beside_lines(["h100-80gb", "a100-40gb", "l4"], xs, lines, (300, 220))
    for i, box in enumerate(boxes):
        assert box.left >= 0
        assert box.right <= 300
        assert HEIGHT_PX <= box.middle <= 220 - HEIGHT_PX
        assert not any(box.meets(other) for other in boxes[i + 1 :])


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@a", "\tx", "\rx"])
def test_csv_cell_that_a_spreadsheet_would_run_is_escaped(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


def test_csv_keeps_numbers_and_writes_instants_in_utc() -> None:
    table = Table("t", "T", ("at", "name", "gpus"), [(at("2026-11-19T09:00"), "a,b", -1.5)])
    assert list(csv_lines(table)) == [
        "at,name,gpus\r\n",
        '2026-11-19T09:00:00+00:00,"a,b",-1.5\r\n',
    ]


def test_spread_of_nothing_has_no_percentiles() -> None:
    assert Spread.of(np.empty(0)) == Spread()


def filters(start: str, end: str, **fields: object) -> ReportFilters:
    return ReportFilters(at(start), at(end), **fields)  # type: ignore[arg-type]


def test_query_keeps_a_preset_and_the_permanent_link_spells_it_out() -> None:
    asked = ReportFilters.last("7d", at("2026-11-19T09:42"), gpu_classes=("l4",), queue="vision")
    assert asked.query() == "range=7d&class=l4&queue=vision"
    assert asked.permanent_query() == (
        "from=2026-11-12T09%3A42Z&to=2026-11-19T09%3A42Z&class=l4&queue=vision"
    )


def test_query_replaces_and_drops_keys() -> None:
    asked = ReportFilters.last("7d", at("2026-11-19T09:42"), queue="vision", user="ann")
    assert asked.query(queue="speech") == "range=7d&user=ann&queue=speech"
    assert asked.query(queue="", user="") == "range=7d"
    assert asked.query(range="24h") == "queue=vision&user=ann&range=24h"


def test_period_before_has_the_same_length_and_ends_where_this_one_begins() -> None:
    asked = filters("2026-11-12T00:00", "2026-11-19T00:00")
    assert asked.before().end == asked.start
    assert asked.before().span == asked.span


def test_note_of_a_range_names_its_dates_with_and_without_a_preset() -> None:
    own = filters("2026-11-19T06:00", "2026-11-19T18:00", zone="Europe/Berlin")
    assert range_note(own, None) == "12 hours, 19 Nov 07:00 – 19 Nov 19:00, in CET"
    named = ReportFilters.last("24h", at("2026-11-19T18:00"), zone="Europe/Berlin")
    assert range_note(named, None) == "18 Nov 19:00 – 19 Nov 19:00, in CET"


def test_month_begins_at_midnight_of_the_display_time_zone_across_a_change_of_the_clock() -> None:
    now = at("2026-11-19T09:42")
    this = ReportFilters.last("this-month", now, zone="Europe/Berlin")
    assert (this.start, this.end) == (at("2026-10-31T23:00"), now)
    last = ReportFilters.last("last-month", now, zone="Europe/Berlin")
    assert (last.start, last.end) == (at("2026-09-30T22:00"), at("2026-10-31T23:00"))
    assert range_label(last) == "1 Oct – 31 Oct 2026"


def test_month_is_compared_with_the_month_before_or_as_much_of_it() -> None:
    last = ReportFilters.last("last-month", at("2026-11-19T09:42"))
    assert (last.before().start, last.before().end) == (at("2026-09-01T00:00"), last.start)
    assert before_label(last) == "the month before"
    this = ReportFilters.last("this-month", at("2026-11-19T09:42"))
    assert (this.before().start, this.before().end) == (
        at("2026-10-01T00:00"), at("2026-10-19T09:42"),
    )  # fmt: skip
    assert before_label(this) == "as much of the month before"
    longer = ReportFilters.last("this-month", at("2026-03-31T12:00"))
    assert longer.before().end == longer.start


def test_month_that_begins_this_minute_still_is_the_one_that_ends() -> None:
    asked = ReportFilters.last("this-month", at("2026-12-01T00:00"))
    assert (asked.start, asked.end) == (at("2026-11-01T00:00"), at("2026-12-01T00:00"))


def test_words_read() -> None:
    whole = filters("2026-10-19T22:00", "2026-11-18T23:00", zone="Europe/Berlin")
    assert range_label(whole) == "20 Oct – 18 Nov 2026"
    assert span_label(whole) == "30 days"
    assert span_label(filters("2026-11-18T09:00", "2026-11-19T09:00")) == "24 hours"
    assert range_label(filters("2026-11-18T09:00", "2026-11-19T09:30")) == (
        "18 Nov 09:00 – 19 Nov 09:30"
    )
    assert hour_name(34) == "Tuesday 10:00"
    assert and_list(["a", "b", "c"]) == "a, b and c"
