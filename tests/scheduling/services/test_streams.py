"""A recorded trace as a stream: which week is played, and what is lived through before."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from scheduling.simulation.traces import TraceError
from workshop.demo.work.arrivals import LIVED_DAYS, open_trace

FIRST = datetime(2017, 10, 1, tzinfo=UTC)


def write(folder: Path, days: int, busy: range) -> Path:
    """Two jobs a day at noon, on busy days of eight GPUs, else of one."""
    lines = ["timestamp,duration,num_gpus,gpu_time,cluster"]
    for day in range(days):
        at = FIRST + timedelta(days=day, hours=12)
        gpus = 8 if day in busy else 1
        lines += [f"{at:%Y-%m-%d %H:%M:%S},3600,{gpus},{3600 * gpus},a"] * 2
    (folder / "philly.csv").write_text("\n".join(lines) + "\n")
    (folder / "philly_vc.csv").write_text("vc,node num\na,2\n")
    return folder


def test_trace_is_played_from_its_busiest_week_after_two_weeks_lived(tmp_path: Path) -> None:
    stream = open_trace(write(tmp_path, 40, range(25, 32)))
    assert stream.start == FIRST + timedelta(days=25)
    assert stream.start - stream.origin < timedelta(days=LIVED_DAYS)
    assert stream.first == 2 * LIVED_DAYS
    assert stream.time_of(stream.first) == stream.start


def test_busy_week_without_a_past_is_not_chosen(tmp_path: Path) -> None:
    stream = open_trace(write(tmp_path, 40, range(7)))
    assert stream.start == FIRST + timedelta(days=LIVED_DAYS)


def test_chosen_day_is_played_first(tmp_path: Path) -> None:
    stream = open_trace(write(tmp_path, 40, range(7)), day=date(2017, 10, 21))
    assert stream.start == datetime(2017, 10, 21, tzinfo=UTC)
    assert stream.first == 2 * LIVED_DAYS
    played = stream.trace.submitted_at(stream.first)
    assert played == datetime(2017, 10, 21, 12, tzinfo=UTC)


def test_first_day_has_no_past(tmp_path: Path) -> None:
    stream = open_trace(write(tmp_path, 40, range(7)), day=FIRST.date())
    assert stream.first == 0
    assert stream.origin == stream.start


def test_day_outside_the_trace_is_refused_with_its_days(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="a day from 2017-10-01 to 2017-11-09, found 2030-01-01"):
        open_trace(write(tmp_path, 40, range(7)), day=date(2030, 1, 1))


@pytest.mark.parametrize("days", [1, 6, 8])
def test_short_trace_is_played_as_far_as_it_goes(tmp_path: Path, days: int) -> None:
    stream = open_trace(write(tmp_path, days, range(1)))
    assert stream.origin <= stream.start <= stream.trace.submitted_at(len(stream) - 1)


def test_past_is_what_arrived_before_the_start(tmp_path: Path) -> None:
    stream = open_trace(write(tmp_path, 40, range(25, 32)))
    past = list(stream.past("gpu", "batch"))
    assert len(past) == stream.first
    assert all(stream.origin <= one.submitted < stream.start for one in past)
    assert {one.workload.user for one in past} == {"user-a"}
