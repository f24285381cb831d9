"""Text, instants and numbers at the boundary."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, available_timezones

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from portal.boundary import reading


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "a\udfff"])
def test_text_that_no_database_stores_is_refused(text):
    with pytest.raises(ValidationError):
        reading.readable(text)


@pytest.mark.parametrize("text", ["", "ä\t\r\n", "\U0001f9e8", "\x1b[1m"])
def test_text_that_databases_store_is_readable(text):
    reading.readable(text)


@pytest.mark.parametrize("text", ["\x1b", "\x00", "\x7f", "\x0b", "\ud800"])
def test_control_character_is_not_printable(text):
    with pytest.raises(ValidationError):
        reading.printable(f"a{text}b")


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\tb", "a\u2028b", "a\u202eb", "\u2066a"])
def test_name_of_more_than_one_line_or_direction_is_refused(text):
    with pytest.raises(ValidationError):
        reading.one_line(text)


def test_name_in_any_script_is_one_line():
    reading.one_line("Größe – 東京, עברית")


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        "0001-01-01",
        "9999-12-31",
        "1969-12-31T23:59:59Z",
        "3000-01-01T00:00:00Z",
        "2026-02-30",
        "2026-01-01T00:00:00+99:99",
        "",
        "now",
        "9" * 5000,
    ],
)
def test_instant_outside_the_calendar_is_refused(text):
    with pytest.raises(ValidationError):
        reading.instant(text)


def test_day_is_its_beginning_in_the_zone():
    berlin = ZoneInfo("Europe/Berlin")
    assert reading.instant("2026-11-19", berlin) == datetime(2026, 11, 18, 23, tzinfo=UTC)


@given(
    at=st.datetimes(timezones=st.timezones() | st.just(timezone(timedelta(hours=23, minutes=59))))
)
def test_instant_within_the_calendar_can_be_read_in_every_zone(at):
    try:
        reading.within_calendar(at)
    except ValidationError:
        return
    for name in ("Pacific/Kiritimati", "Etc/GMT+12", "Europe/Berlin"):
        assert name in available_timezones()
        at.astimezone(ZoneInfo(name)) + timedelta(days=366 * 5)


@pytest.mark.parametrize("text", ["-1", "1.5", "", "²", "x", "9" * 19, "9" * 5000, str(2**63)])
def test_text_that_is_no_whole_number_is_refused(text):
    with pytest.raises(ValidationError):
        reading.whole(text)


@pytest.mark.parametrize(("text", "number"), [("0", 0), (" 12 ", 12), (str(2**63 - 1), 2**63 - 1)])
def test_whole_number_is_read(text, number):
    assert reading.whole(text) == number


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_number_that_is_not_finite_is_refused(number):
    with pytest.raises(ValidationError):
        reading.finite(number)
